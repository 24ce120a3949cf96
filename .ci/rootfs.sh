#!/usr/bin/env bash
# Lays out the root of each image under the folder given: agent/, prober/ and
# registry/ with the program, the certificates of public authorities and the
# name of the user; data/ is empty. Called by the Dockerfile and by image.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: rootfs.sh FOLDER}
certificates=${CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}

.ci/build.sh "$out/bin"
for program in agent prober registry; do
  root=$out/$program
  mkdir -p "$root/etc/ssl/certs"
  mv "$out/bin/sidebeat-$program" "$root/"
  cp -L "$certificates" "$root/etc/ssl/certs/ca-certificates.crt"
  echo 'sidebeat:x:65532:65532:sidebeat:/:/sbin/nologin' >"$root/etc/passwd"
  echo 'sidebeat:x:65532:' >"$root/etc/group"
  chmod -R u=rwX,go=rX "$root"
done
mkdir -p "$out/data"
