#!/usr/bin/env bash
# canary.sh FILE: fails when a secret stands in the file. Tests use these words
# for passwords, keys and tokens, and every token of a login begins as the last.
# Without a file it shows that it would find one, and that tests use them.
set -euo pipefail
cd "$(dirname "$0")/.."
words='canary7''Zq4|canary-''token|canary/''pass|secret-''canary|eyJ''hbGciOi'

found() {
  local hits
  hits=$(grep -nE "$words" "$1" | cut -c1-200 | sed -E "s#($words).*#\1...#" | head -n 20) || return 1
  echo "secrets stand in $1:" >&2
  sed 's/^/  /' <<<"$hits" >&2
}

if [ $# -gt 0 ]; then
  if found "$1"; then exit 1; fi
  exit 0
fi
probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
for word in ${words//|/ }; do
  printf 'cannot log in: %s is wrong\n' "$word" >"$probe"
  found "$probe" 2>/dev/null || { echo "the look for secrets does not find one" >&2; exit 1; }
done
for package in access admin nacos setting cmd/sidebeat-agent cmd/sidebeat-registry; do
  grep -rlE --include='*_test.go' "$words" "$package" >/dev/null || { echo "no test of $package has a secret to look for" >&2; exit 1; }
done
