#!/usr/bin/env bash
# The figures of the product beside its peers, in one run (about 12 minutes, of
# which the agent's footprint takes 5; ARGS='-agent 1m' or ARGS='-only beats'
# for less). Then the benchmarks of single parts that BENCH names, each for
# BENCHTIME.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/build.sh bin
mkdir -p build
CGO_ENABLED=0 go build -o build/bench ./test/bench
# shellcheck disable=SC2086 # several words on purpose
build/bench -bin bin ${ARGS:-}
CGO_ENABLED=0 go test -run '^$' -bench "${BENCH:-Sweep1M|Refresh|Services100k|BeatLight\$|BeatFull|Catalog|Deadlines}" -benchtime "${BENCHTIME:-1s}" -benchmem -timeout 30m ./registry ./nacos ./run
