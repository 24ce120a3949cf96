#!/usr/bin/env bash
# Looks for known vulnerabilities that our code reaches, by a database that is
# a Go module and so needs no other host. Findings in modules fail; those in
# the standard library of this machine's Go are printed with the version that
# mends them, because releases are built with a newer one (see Dockerfile).
set -euo pipefail
cd "$(dirname "$0")/.."

module=golang.org/x/vulndb
version=v0.0.0-20261105234957-e22db6528018
folder=$(go env GOCACHE)/sidebeat/vulndb-$version

if [ ! -f "$folder/index/db.json" ]; then
  data=$(go mod download -json "$module@$version" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
  rm -rf "$folder.new"
  mkdir -p "$folder.new"
  go run "$module/cmd/indexdb@$version" -vulns "$data/data/osv" -out "$folder.new"
  rm -rf "$folder"
  mv "$folder.new" "$folder"
fi

findings=$(mktemp)
trap 'rm -f "$findings"' EXIT
go tool -modfile=.ci/tools.mod govulncheck -db "file://$folder" -format json -tags grpcnotrace ./... >"$findings"
go run .ci/vulns.go <"$findings"
