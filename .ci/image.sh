#!/usr/bin/env bash
# Proves the images without a container engine: builds their roots as the
# Dockerfile does, with the Go that it names, and runs each program in a chroot
# of its root as the image's user, where no shell and no library exist.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/image
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

# What the Dockerfile says, so that it is said once.
argument() { sed -n "s/^ARG $1=//p" Dockerfile | head -n 1; }
user=$(sed -n 's/^USER //p' Dockerfile | sort -u)
[[ $user =~ ^[0-9]+:[0-9]+$ ]] || { echo "the Dockerfile's USER is not one number pair: $user" >&2; exit 1; }

GOTOOLCHAIN=${GOTOOLCHAIN_FOR_IMAGE:-$(argument GO_TOOLCHAIN)} .ci/rootfs.sh "$out"
for program in agent prober registry; do
  binary=$out/$program/sidebeat-$program
  go version "$binary" | sed "s|^$out/||"
  printf '  %d kB, files: %s\n' "$(($(stat -c %s "$binary") / 1000))" "$(cd "$out/$program" && find . -type f ! -path './licenses/*' | sort | tr '\n' ' ')"
done

if [ "$(id -u)" != 0 ]; then
  echo "not run in a chroot: that needs root, and this is user $(id -u)"
  exit 0
fi
chroot=$(PATH=$PATH:/usr/sbin:/sbin command -v chroot || true)
if [ -z "$chroot" ] || ! "$chroot" --userspec="$user" / true 2>/dev/null; then
  echo 'not run in a chroot: this machine has none or refuses it'
  exit 0
fi
in_image() { # PROGRAM ARGUMENTS...
  local program=$1
  shift
  env -i "$chroot" --userspec="$user" "$out/$program" "/sidebeat-$program" "$@"
}
for program in agent prober registry; do
  in_image "$program" --version
done
# A wrong setting: exit code 2, and it is said before anything is registered.
code=0
env -i SIDEBEAT_SERVICE=orders "$chroot" --userspec="$user" "$out/agent" /sidebeat-agent 2>"$out/refused" || code=$?
grep -q SIDEBEAT_ADDRESS "$out/refused" && [ "$code" = 2 ] ||
  { echo "the agent without an address ended with $code and said:" >&2; cat "$out/refused" >&2; exit 1; }
# The registry serves from its own root, keeps its data and ends in order.
install -d -o "${user%:*}" -g "${user#*:}" "$out/registry/data"
env -i SIDEBEAT_LISTEN=127.0.0.1:0 SIDEBEAT_ADMIN=off SIDEBEAT_DATA=/data "$chroot" --userspec="$user" "$out/registry" /sidebeat-registry 2>"$out/served" &
registry=$!
for _ in {1..100}; do
  if grep -q serves "$out/served" || ! kill -0 "$registry" 2>/dev/null; then break; fi
  sleep 0.1
done
code=0
kill -TERM "$registry" 2>/dev/null || true
wait "$registry" || code=$?
[ "$code" = 0 ] && grep -q serves "$out/served" && [ -n "$(ls "$out/registry/data")" ] ||
  { echo "the registry ended with $code and said:" >&2; cat "$out/served" >&2; exit 1; }
rm -r "$out/registry/data"
echo "each runs in its own root as $user"
