#!/usr/bin/env bash
# Runs every fuzz target of every package for FUZZTIME (10s), one after the other.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-10s}
found=0
for package in $(git grep -l '^func Fuzz' -- '*_test.go' | xargs -r -n1 dirname | sort -u); do
  for target in $(git grep -h '^func Fuzz' -- "$package/*_test.go" | sed -E 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/' | sort -u); do
    echo "fuzz $package $target for $time"
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "./$package"
    found=$((found + 1))
  done
done
echo "$found targets, nothing found"
