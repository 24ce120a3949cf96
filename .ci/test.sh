#!/usr/bin/env bash
# Runs all tests (further arguments go to go test) and keeps everything that
# they, and the programs that they start, print: build/test.log. Then no secret
# may stand in it. On the screen: one line a package, and what failed.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
.ci/canary.sh
code=0
# Not what was unpacked into build/.
packages=$(go list -e ./... | grep -v '/build/')
# shellcheck disable=SC2086 # several words on purpose
go test -v "$@" $packages >build/test.log 2>&1 || code=$?
grep -E '^(ok|FAIL|panic:)[[:space:]]' build/test.log || true
[ "$code" = 0 ] || grep -E -A 60 '^ *--- FAIL|^panic:|build failed' build/test.log | grep -vE '^ *(=== |--- PASS)' | head -n 400 >&2 || true
.ci/canary.sh build/test.log || code=1
exit "$code"
