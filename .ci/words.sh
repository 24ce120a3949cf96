#!/usr/bin/env bash
# Refuses words that do not belong where they stand. The patterns are written
# so that they do not match themselves.
set -euo pipefail
cd "$(dirname "$0")/.."
faults=0

# refuse WHY PATTERN PATHSPEC...
refuse() {
  local why=$1 pattern=$2 hits
  shift 2
  hits=$(git grep -nIE --untracked -e "$pattern" -- "$@" || true)
  [ -z "$hits" ] && return
  echo "$why:" >&2
  sed 's/^/  /' <<<"$hits" >&2
  faults=1
}

# What ships; registrytest and test/ are tests in files of another name.
code=('*.go' ':!*_test.go' ':!registry/registrytest/' ':!test/')

refuse 'a path of the machine it was built on' '(^|[^A-Za-z0-9_.])/(work|farm|tmp/brief)/' .
refuse 'the host of a package registry' '(proxy|sum)[.]golang[.]org|registry[.]npmjs|pypi[.]org|repo[.]maven|crates[.]io/api|deb[.]debian[.]org' . ':!*.sum'
refuse 'a timer or a pause outside run/ (use run.Wait, run.Every)' 'time[.](Sleep|After|AfterFunc|Tick|NewTicker)[(]' "${code[@]}" ':!run/'
refuse 'a goroutine outside run/ (use run.All, run.Each, run.Set)' '^[[:space:]]*go (func|[A-Za-z_][A-Za-z0-9_.]*[(])|sync[.]WaitGroup|errgroup[.]' "${code[@]}" ':!run/'
refuse 'agent and prober know only the words of the registry, not its store' 'registry[.](New)?Store\b' 'agent/*.go' 'prober/*.go' ':!*_test.go'
refuse 'a template engine in what ships (it stops the linker from dropping methods)' '"(text|html)/template"|envconfig[.](Check|Usage)' "${code[@]}"
refuse 'something left open' 'TODO|FIXME|XXX|not implemented' '*.go'

# A test may sleep in a synctest bubble, where it takes no time; tests of real
# processes may stop one for a while.
slept=$(git grep -lE --untracked '^[[:space:]]*time[.]Sleep[(]' -- '*_test.go' ':!cmd/' ':!test/' | xargs -r grep -L 'synctest' || true)
[ -z "$slept" ] || { echo "a test that sleeps outside a synctest bubble: $slept" >&2; faults=1; }
exit $faults
