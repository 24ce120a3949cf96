#!/usr/bin/env bash
# All checks but the plain tests. Each runs although one before it failed; the
# exit code is 1 when any did.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOFLAGS="${GOFLAGS:-} -buildvcs=false"
failed=()

# step NAME COMMAND...: runs the command and notes a failure.
step() {
  local name=$1 started=$SECONDS
  shift
  echo "== $name"
  if ! "$@"; then
    failed+=("$name")
    echo "   $name failed after $((SECONDS - started)) s" >&2
  fi
}

tool() { go tool -modfile=.ci/tools.mod "$@"; }

# empty COMMAND...: fails when the command fails or says anything.
empty() {
  local out
  out=$("$@" 2>&1) || { echo "$out" >&2; return 1; }
  [ -z "$out" ] || { echo "$out" >&2; return 1; }
}

formatted() { git ls-files -co --exclude-standard -- '*.go' | xargs -r gofmt -l; }

# sizes prints what is too long; in tests that is a notice, not a failure.
sizes() {
  local long
  long=$(git ls-files -co --exclude-standard -- '*.go' | xargs -r awk '
    function file_ends() { if (lines > 450) print file ": " lines " lines, more than 450" }
    FNR == 1 { file_ends(); file = FILENAME; start = 0 }
    { lines = FNR }
    /^func / { start = FNR }
    /^}/ { if (start && FNR - start > 60) print FILENAME ":" start ": a function of " FNR - start " lines, more than 60"; start = 0 }
    END { file_ends() }')
  grep '_test[.]go:' <<<"$long" || true
  ! grep -v '_test[.]go:' <<<"$long" | grep .
}

arrows() {
  diff -u .ci/imports.txt <(.ci/arrows.sh) ||
    { echo "who imports whom has changed; if that was wanted: make arrows" >&2; return 1; }
}

modules() {
  go mod verify
  empty go mod tidy -diff
}

# The working tree must be as it was: nothing above may write into it.
tree() { git diff HEAD; git status --porcelain; }
before=$(tree | cksum)
unchanged() {
  [ "$(tree | cksum)" = "$before" ] || { echo "the checks changed files:" >&2; git status --short >&2; return 1; }
}

step gofmt empty formatted
step vet go vet ./...
step 'go fix' empty go fix -diff ./...
# Without ST1005: an error may end in an example such as status=...
step staticcheck tool staticcheck -checks inherit,-ST1005 ./...
step sizes sizes
step arrows arrows
step words .ci/words.sh
step modules modules
step 'files of deploy' .ci/deploy.sh
step 'release, twice' .ci/reproduce.sh
step faults env ARGS=-short .ci/faults.sh
step 'race detector' .ci/test.sh -race -shuffle=on
step vulnerabilities .ci/vulns.sh
step 'clean tree' unchanged

if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
