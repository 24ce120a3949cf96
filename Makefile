# Needs Go 1.26, git and make. `make check` needs gcc too, for the race detector.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
export VERSION

# Stamping the commit into every test binary fails in a checkout of another
# user and is of no use; VERSION goes in by the linker instead.
export GOFLAGS := $(GOFLAGS) -buildvcs=false

# Built as the programs are, so that what they share is compiled once, and run
# without `go run`, which ends with 1 after Ctrl-C.
LOCAL = echo 'compiling, which takes a minute the first time ...' && mkdir -p build && CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -o build/local ./deploy/local && exec build/local

.PHONY: help run demo test compat check build bench faults fuzz image release arrows settings clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

run: ## registry, prober, two small apps and an agent on this machine; Ctrl-C ends all
	@$(LOCAL) run

demo: ## the life of an app and of a persistent instance, played in under a minute
	@$(LOCAL) demo

test: ## all tests; what they print (build/test.log) may hold no secret
	CGO_ENABLED=0 .ci/test.sh

compat: ## real clients of Nacos (Go, Node, Java, Python) against the registry; COMPAT_CLIENTS=go,node chooses
	cd test/compat && go vet ./... && go test -count=1 -parallel 8 ./...

check: ## what CI asks: form, linters, arrows, words, race detector, vulnerabilities
	@.ci/check.sh

build: ## the three programs, static and stripped, into bin/
	@.ci/build.sh bin

bench: ## the benchmark set, one run
	@.ci/bench.sh

faults: ## kills, power cuts, ill disks, clocks and more at the registry: what was lost, what clients saw
	@.ci/faults.sh

fuzz: ## every fuzz target for FUZZTIME (10s)
	@.ci/fuzz.sh

release: ## build/out/dist: archives, images, SBOMs, licences and checksums, for amd64 and arm64
	@.ci/release.sh build/out

image: ## the images of a release, made and run without an engine
	@.ci/image.sh

arrows: ## write .ci/imports.txt anew: who imports whom
	@mkdir -p build && .ci/arrows.sh > build/imports.txt && mv build/imports.txt .ci/imports.txt

settings: ## write config.env.example and docs/settings.md anew
	go test -count=1 -run '^TestSettings' ./cmd/sidebeat-registry -update

clean: ## remove what was built
	rm -rf bin build
