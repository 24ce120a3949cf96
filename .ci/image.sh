#!/usr/bin/env bash
# Runs the images without a container engine: unpacks the layers that release.sh
# made in FOLDER (without one it makes them first) and starts each program in
# its root, which is read-only and holds no shell and no library, as the
# image's user, with the image's settings.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# = 0 ]; then
  .ci/release.sh build/out
  set -- build/out
fi
out=$(cd "$1" && pwd)
native=$(go env GOHOSTARCH)

go build -modfile=.ci/packaging.mod -o "$out/extract" .ci/oci.go
unpack() { # ARCHITECTURE
  for image in agent prober registry; do
    local folder=$out/unpacked/$1/$image
    rm -rf "$folder"
    mkdir -p "$folder/root"
    "$out/extract" -extract "$out/oci/$image" -out "$folder" "$1"
    tar --same-owner --numeric-owner -C "$folder/root" -xf "$folder/rootfs.tar" 2>/dev/null || tar -C "$folder/root" -xf "$folder/rootfs.tar"
  done
}
unpack amd64
unpack arm64
for image in agent prober registry; do
  for arch in amd64 arm64; do
    binary=$out/unpacked/$arch/$image/root/sidebeat-$image
    go version -m "$binary" | awk -v arch="$arch" '/GOARCH=/ { found = $2 == "GOARCH=" arch } END { exit !found }' ||
      { echo "$binary is not for $arch" >&2; exit 1; }
  done
  # What the OCI image specification names, each with a value.
  for label in title description version revision source documentation vendor licenses; do
    grep -qE "^org[.]opencontainers[.]image[.]$label=.+" "$out/unpacked/amd64/$image/labels" || { echo "$image has no label $label" >&2; exit 1; }
  done
  echo "$image: $(($(stat -c %s "$out/unpacked/amd64/$image/root/sidebeat-$image") / 1000)) kB, files: $(cd "$out/unpacked/amd64/$image/root" && find . -type f ! -path './licenses/*' | LC_ALL=C sort | tr '\n' ' ')"
done

if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
  echo "NOT RUN from the layers: that needs root and a mount namespace, and this is user $(id -u)" >&2
  exit 0
fi

chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot)
# in_image IMAGE SETTINGS... ARGUMENTS...: as an engine would start it; /data is
# its volume, everything else is read-only.
in_image() {
  local root=$out/unpacked/$native/$1/root config
  mapfile -t config <"$out/unpacked/$native/$1/config"
  shift
  local settings=("${config[@]:2}")
  while [[ ${1:-} == *=* ]]; do
    settings+=("$1")
    shift
  done
  # shellcheck disable=SC2016 # the inner shell expands
  exec unshare -m bash -c '
    set -euo pipefail
    root=$1 user=$2 && shift 2
    mount --make-rprivate /
    mount --bind "$root" "$root"
    mount -o remount,ro,bind "$root"
    if [ -d "$root/data" ]; then mount -t tmpfs -o "mode=700,uid=${user%:*},gid=${user#*:}" data "$root/data"; fi
    exec env -i "$@"' bash "$root" "${config[0]}" "${settings[@]}" "$chroot" --userspec="${config[0]}" "$root" "${config[1]}" "$@"
}
for image in agent prober registry; do
  (in_image "$image" --version)
done
# A wrong setting: exit code 2, and it is said before anything is registered.
code=0
(in_image agent SIDEBEAT_SERVICE=orders) 2>"$out/said" || code=$?
grep -q SIDEBEAT_ADDRESS "$out/said" && [ "$code" = 2 ] ||
  { echo "the agent without an address ended with $code and said:" >&2; cat "$out/said" >&2; exit 1; }

# runs IMAGE SETTINGS...: starts it, waits until it says that it works, and ends
# it in order.
runs() {
  local said=$out/said-$1 code=0 process
  : >"$said"
  in_image "$@" 2>"$said" &
  process=$!
  for _ in {1..100}; do
    if grep -qE 'serves|works' "$said" || ! kill -0 "$process" 2>/dev/null; then break; fi
    sleep 0.1
  done
  kill -TERM "$process" 2>/dev/null || true
  wait "$process" || code=$?
  [ "$code" = 0 ] && grep -qE 'serves|works' "$said" || { echo "$1 ended with $code and said:" >&2; cat "$said" >&2; exit 1; }
}
runs registry SIDEBEAT_LISTEN=127.0.0.1:0 SIDEBEAT_ADMIN=off
runs prober SIDEBEAT_ADMIN=127.0.0.1:0
echo "each runs from its layers as $(head -n 1 "$out/unpacked/$native/agent/config"), with a read-only root"

[ "$native" != arm64 ] || exit 0
emulator=$(command -v qemu-aarch64-static || true)
[ -n "$emulator" ] || { echo 'NOT RUN: the arm64 images, since this machine has no qemu-aarch64-static (Debian: qemu-user-static)' >&2; exit 0; }
for image in agent prober registry; do
  "$emulator" "$out/unpacked/arm64/$image/root/sidebeat-$image" --version
done
