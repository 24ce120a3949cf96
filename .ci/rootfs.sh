#!/usr/bin/env bash
# Lays out the root of each image under the folder given: agent/, prober/ and
# registry/ with the program, the certificates of public authorities, the name
# of the user, and the licences of what is linked; data/ is empty. Called by the
# Dockerfile and by layouts.sh. The programs are built for GOARCH, or taken from
# the second folder.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
out=${1:?usage: rootfs.sh FOLDER [PROGRAMS]}
programs=${2:-}
mkdir -p "$out"
if [ -z "$programs" ]; then
  programs=$out/bin
  .ci/build.sh "$programs"
fi
(unset GOARCH GOTOOLCHAIN && go run -modfile=.ci/roots.mod .ci/roots.go) >"$out/roots.pem"
for program in agent prober registry; do
  root=$out/$program
  rm -rf "$root"
  mkdir -p "$root/etc/ssl/certs"
  cp "$programs/sidebeat-$program" "$root/"
  cp "$out/roots.pem" "$root/etc/ssl/certs/ca-certificates.crt"
  echo 'sidebeat:x:65532:65532:sidebeat:/:/sbin/nologin' >"$root/etc/passwd"
  echo 'sidebeat:x:65532:' >"$root/etc/group"
  cp LICENSE "$root/"
  .ci/licences.sh "$root/licenses" "./cmd/sidebeat-$program" >"$out/modules"
  mv "$out/modules" "$root/licenses/MODULES"
  chmod -R u=rwX,go=rX "$root"
done
mkdir -p "$out/data"
find "$out" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +
