#!/usr/bin/env bash
# Copies the licence texts of all modules that the packages given link into the
# folder given, and prints a line for each module: path, version, licence. A
# licence that is not one of the few below fails: somebody has to read it first.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: licences.sh FOLDER PACKAGE...}
shift

# kind FILE: the SPDX names, by words that stand in that licence only.
kind() {
  local words names=()
  words=$(tr -s '[:space:]' ' ' <"$1")
  [[ $words != *'Mozilla Public License'*[vV]'ersion 2.0'* ]] || names+=(MPL-2.0)
  [[ $words != *'Apache License'*'ersion 2.0'* ]] || names+=(Apache-2.0)
  [[ $words != *'Redistribution and use in source and binary forms'* ]] ||
    { [[ $words == *'Neither the name'* ]] && names+=(BSD-3-Clause); } || names+=(BSD-2-Clause)
  [[ $words != *'Permission is hereby granted, free of charge'* ]] || names+=(MIT)
  [ ${#names[@]} -gt 0 ] || return 1
  (IFS=,; echo "${names[*]}")
}

modules=$(CGO_ENABLED=0 go list -deps -tags grpcnotrace -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' "$@" | LC_ALL=C sort -u)
while read -r module version folder; do
  mkdir -p "$out/$module"
  cp "$folder"/LICEN[CS]E* "$folder"/COPYING* "$folder"/NOTICE* "$out/$module/" 2>/dev/null || true
  chmod -R u=rwX,go=rX "$out/$module"
  name=
  for text in "$out/$module"/*; do
    case ${text##*/} in NOTICE*) continue ;; esac
    name=${name:+$name,}$(kind "$text") || { echo "cannot tell the licence of $module@$version" >&2; exit 1; }
  done
  echo "$module $version $name"
done <<<"$modules"
install -D -m 644 "$(go env GOROOT)/LICENSE" "$out/std/LICENSE"
echo "std $(go env GOVERSION) $(kind "$out/std/LICENSE")"
