#!/usr/bin/env bash
# Runs the benchmark set once. BENCH chooses by name, BENCHTIME how long each.
set -euo pipefail
cd "$(dirname "$0")/.."
CGO_ENABLED=0 go test -run '^$' -bench "${BENCH:-.}" -benchtime "${BENCHTIME:-1s}" -benchmem -timeout 30m ./...
