#!/usr/bin/env bash
# Lays out the root of each image under the folder given: agent/, prober/ and
# registry/ with the program, the certificates of public authorities, the name
# of the user, and the licences of what is linked; data/ is empty. Called by the
# Dockerfile and by image.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: rootfs.sh FOLDER}
certificates=${CERTIFICATES:-/etc/ssl/certs/ca-certificates.crt}

# licences PACKAGE FOLDER: the licence of each module that the program links.
licences() {
  CGO_ENABLED=0 go list -deps -tags grpcnotrace -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' "$1" | sort -u |
    while read -r module folder; do
      mkdir -p "$2/$module"
      cp "$folder"/LICENSE* "$folder"/LICENCE* "$folder"/COPYING* "$folder"/NOTICE* "$2/$module/" 2>/dev/null || true
      [ -n "$(ls "$2/$module")" ] || { echo "no licence in $module" >&2; exit 1; }
    done
}

.ci/build.sh "$out/bin"
for program in agent prober registry; do
  root=$out/$program
  mkdir -p "$root/etc/ssl/certs"
  mv "$out/bin/sidebeat-$program" "$root/"
  cp -L "$certificates" "$root/etc/ssl/certs/ca-certificates.crt"
  echo 'sidebeat:x:65532:65532:sidebeat:/:/sbin/nologin' >"$root/etc/passwd"
  echo 'sidebeat:x:65532:' >"$root/etc/group"
  cp LICENSE "$root/"
  licences "./cmd/sidebeat-$program" "$root/licenses"
  chmod -R u=rwX,go=rX "$root"
done
mkdir -p "$out/data"
