#!/usr/bin/env bash
# Brings faults about at the real registry and prints what came of each (under
# 4 minutes; ARGS=-short for less than one, ARGS='-only disk' for some). Root,
# strace and mkfs.ext4 are needed for all of them; what cannot be made says why.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/build.sh bin
mkdir -p build
CGO_ENABLED=0 go build -o build/faults ./test/faults
# shellcheck disable=SC2086 # several words on purpose
exec build/faults -bin bin ${ARGS:-}
