#!/usr/bin/env bash
# Makes a release in FOLDER: an archive for each architecture, an SBOM for each
# program, the licences of what is linked, and the checksums of all of them;
# then the images. The version is that of git, the time that of the commit, the
# Go that which the Dockerfile names: the same commit gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC
out=${1:?usage: release.sh FOLDER}
mkdir -p "$out"
out=$(cd "$out" && pwd)
export VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || echo dev)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
GO_TOOLCHAIN=${GO_TOOLCHAIN:-$(sed -n 's/^ARG GO_TOOLCHAIN=//p' Dockerfile | head -n 1)}
export SOURCE_DATE_EPOCH GO_TOOLCHAIN
name=sidebeat_${VERSION#v}
release=$out/release
dist=$out/dist
rm -rf "$release" "$dist"
mkdir -p "$release" "$dist"

GOFLAGS="${GOFLAGS:-} -trimpath" go build -modfile=.ci/packaging.mod -o "$release/sbom" github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
export GOTOOLCHAIN=$GO_TOOLCHAIN CGO_ENABLED=0
for program in agent prober registry; do
  GOARCH=amd64 GOFLAGS="${GOFLAGS:-} -tags=grpcnotrace" "$release/sbom" app -json -licenses -std -noserial -notimestamp \
    -main "cmd/sidebeat-$program" -output "$dist/${name}_sidebeat-$program.cdx.json" . 2>"$release/sbom.log" ||
    { cat "$release/sbom.log" >&2; exit 1; }
done
for arch in amd64 arm64; do
  GOARCH=$arch .ci/build.sh "$release/$arch"
  folder=$release/${name}_linux_$arch
  mkdir -p "$folder/systemd"
  cp "$release/$arch"/sidebeat-* LICENSE README.md CHANGELOG.md config.env.example "$folder/"
  cp deploy/systemd/*.service "$folder/systemd/"
  GOARCH=$arch .ci/licences.sh "$folder/licenses" ./cmd/... >"$release/licences-$arch.txt"
  cp "$release/licences-$arch.txt" "$folder/licenses/MODULES"
  tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$release" -cf - "${folder##*/}" |
    gzip -n6 >"$dist/${folder##*/}.tar.gz"
done
# One list for both: a module that only one architecture links would be news.
diff "$release/licences-amd64.txt" "$release/licences-arm64.txt"
cp "$release/licences-amd64.txt" "$dist/${name}_licences.txt"
unset GOTOOLCHAIN CGO_ENABLED
.ci/layouts.sh "$out" >"$release/images"
(cd "$out/oci" && for image in *; do
  tar --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -C "$image" -cf "$dist/${name}_image-$image.oci.tar" .
done)
(cd "$dist" && sha256sum -- * >SHA256SUMS)
cat "$release/images"
