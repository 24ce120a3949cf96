#!/usr/bin/env bash
# Prints who imports whom among our packages, tests left out, sorted.
set -euo pipefail
cd "$(dirname "$0")/.."
us=$(go list -m)
go list -f '{{$from := .ImportPath}}{{range .Imports}}{{$from}} -> {{.}}{{"\n"}}{{end}}' ./... |
  awk -v us="$us/" 'index($1, us) == 1 && index($3, us) == 1 { print substr($1, length(us) + 1), "->", substr($3, length(us) + 1) }' |
  LC_ALL=C sort -u
