#!/usr/bin/env bash
# Makes the release of this commit twice, in two clones in different folders,
# with another umask, time zone and language, and compares all files; then
# compares the SBOMs with what the programs were built from, and runs the
# images. What is not committed is not looked at.
set -euo pipefail
cd "$(dirname "$0")/.."
first=$(mktemp -d)
second=$(mktemp -d)/elsewhere
mkdir "$second"
trap 'rm -rf "$first" "${second%/*}"' EXIT
unset VERSION SOURCE_DATE_EPOCH # each clone asks its git
for folder in "$first" "$second"; do
  git clone -q --no-local . "$folder/clone"
done
(umask 077 && TZ=Pacific/Chatham LC_ALL=C.UTF-8 "$first/clone/.ci/release.sh" "$first/out" >"$first/images") &
(umask 002 && TZ=UTC LC_ALL=C "$second/clone/.ci/release.sh" "$second/out" >"$second/images")
wait $!
diff -r "$first/out/dist" "$second/out/dist"
diff "$first/images" "$second/images"
(cd "$first/out/dist" && sha256sum --check --strict --quiet SHA256SUMS)
cat "$first/images"
echo "two builds, same bytes: $(wc -l <"$first/out/dist/SHA256SUMS") files"
# What the Dockerfile runs, without git as there, leaves what the images hold.
mkdir "$first/src"
git -C "$first/clone" archive HEAD | tar -C "$first/src" -xf -
(
  cd "$first/src"
  GO_TOOLCHAIN=$(sed -n 's/^ARG GO_TOOLCHAIN=//p' Dockerfile | head -n 1)
  VERSION=$(git -C "$first/clone" describe --tags --always)
  export GO_TOOLCHAIN VERSION TARGETARCH=amd64
  sed -n 's/^RUN //p' Dockerfile | sed "s|/out\$|$first/docker|" | bash -euo pipefail -s
)
for folder in agent prober registry; do
  diff -r "$first/docker/$folder" "$first/out/roots/amd64/$folder"
done

go build -modfile=.ci/packaging.mod -o "$first/sbom" .ci/sbom.go
for program in agent prober registry; do
  "$first/sbom" "$first/out/dist"/*_sidebeat-$program.cdx.json "$first/out/release"/{amd64,arm64}/sidebeat-$program
done
.ci/image.sh "$first/out"
