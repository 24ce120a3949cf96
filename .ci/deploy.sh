#!/usr/bin/env bash
# Holds the files of deploy/ against the schemas of those who will read them:
# Compose by its own loader, Kubernetes by the schemas of the version below,
# which come as a Go module. What the files start is run by deploy/*_test.go,
# where systemd reads the units too.
set -euo pipefail
cd "$(dirname "$0")/.."
kubernetes=v1.37.2

# What the tests in deploy/ leave out on this machine; `go test` does not say it.
unshare -mnp --fork true 2>/dev/null || echo 'NOT PLAYED: the files of deploy/ and the commands of docs/, since namespaces need root'
for program in bash curl pkill python3; do
  [ -e "/usr/bin/$program" ] || echo "NOT PLAYED: what needs /usr/bin/$program, which this machine has not"
done
command -v systemd-analyze >/dev/null || echo 'NOT READ by systemd: the units, since this machine has no systemd-analyze'
[ -e /usr/sbin/nginx ] || echo 'NOT READ by nginx: the site of deploy/samples/php-fpm.yaml, since this machine has none'
schemas=$(go env GOCACHE)/sidebeat/kubernetes-$kubernetes

go run -modfile=.ci/packaging.mod .ci/compose.go deploy/compose/*.yaml deploy/samples/*.yaml

if [ ! -d "$schemas" ]; then
  module=$(go mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
  rm -rf "$schemas.new"
  install -D -m 644 "$module/api/openapi-spec/v3/api__v1_openapi.json" "$schemas.new/api/v1.json"
  for file in "$module"/api/openapi-spec/v3/apis__*__*_openapi.json; do
    name=${file##*/apis__}
    name=${name%_openapi.json}
    install -D -m 644 "$file" "$schemas.new/apis/${name%__*}/${name##*__}.json"
  done
  mv "$schemas.new" "$schemas"
fi
validate() { go tool -modfile=.ci/kubernetes.mod kubectl-validate --local-schemas "$schemas" "$@"; }
validate deploy/kubernetes/*.yaml
# It must refuse what is wrong, else it has not read the schemas.
wrong=$(mktemp --suffix=.yaml)
trap 'rm -f "$wrong"' EXIT
sed 's/readOnlyRootFilesystem/readOnlyRootfilesystem/' deploy/kubernetes/agent.yaml >"$wrong"
if validate "$wrong" >/dev/null 2>&1; then
  echo 'an unknown field was not seen' >&2
  exit 1
fi
