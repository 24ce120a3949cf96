#!/usr/bin/env bash
# Writes the images as OCI layouts, FOLDER/oci/{agent,prober,registry}, from
# the release in FOLDER/release (see release.sh), and prints their digests.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: layouts.sh FOLDER}
for arch in amd64 arm64; do
  GOARCH=$arch GOTOOLCHAIN=${GO_TOOLCHAIN:?} .ci/rootfs.sh "$out/roots/$arch" "$out/release/$arch"
done
rm -rf "$out/oci"
go run -modfile=.ci/packaging.mod .ci/oci.go -roots "$out/roots" -out "$out/oci" -epoch "$SOURCE_DATE_EPOCH" \
  -arg "VERSION=$VERSION" -arg "REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)" amd64 arm64
