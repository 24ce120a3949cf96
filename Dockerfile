# One image per program, for amd64 and arm64:
#   docker buildx build --target agent --platform linux/amd64,linux/arm64 -t sidebeat-agent:0.1.0 \
#     --build-arg VERSION=0.1.0 --build-arg REVISION=$(git rev-parse HEAD) \
#     --build-arg SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) .
# With --output type=oci,dest=agent.tar,rewrite-timestamp=true two builds give
# the same bytes. `make image` does all this without an engine: .ci/rootfs.sh
# lays out what goes in, and .ci/oci.go does what the lines below say.

# Any Go from 1.26 will do here: GO_TOOLCHAIN is the one that compiles. It is
# the newest patched one, because 1.26.8 has known faults in net/http and TLS.
ARG GO_IMAGE=golang:1.26
ARG GO_TOOLCHAIN=go1.27.3

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG GO_TOOLCHAIN
ARG TARGETARCH
ARG VERSION=dev
ARG SOURCE_DATE_EPOCH=0
WORKDIR /src
COPY go.mod go.sum ./
RUN GOTOOLCHAIN=${GO_TOOLCHAIN} go mod download
COPY . .
RUN GOTOOLCHAIN=${GO_TOOLCHAIN} GOARCH=${TARGETARCH} .ci/rootfs.sh /out

FROM scratch AS base
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="https://github.com/sidebeat/sidebeat" \
      org.opencontainers.image.documentation="https://github.com/sidebeat/sidebeat/tree/main/docs" \
      org.opencontainers.image.vendor="the Sidebeat authors" \
      org.opencontainers.image.licenses="Apache-2.0"
USER 65532:65532

FROM base AS agent
LABEL org.opencontainers.image.title="sidebeat-agent" \
      org.opencontainers.image.description="Registers an app that has no SDK in a Nacos registry and beats for it"
COPY --from=build /out/agent/ /
ENTRYPOINT ["/sidebeat-agent"]

FROM base AS prober
LABEL org.opencontainers.image.title="sidebeat-prober" \
      org.opencontainers.image.description="Asks the persistent instances of a registry whether they are alive"
COPY --from=build /out/prober/ /
ENTRYPOINT ["/sidebeat-prober"]

FROM base AS registry
LABEL org.opencontainers.image.title="sidebeat-registry" \
      org.opencontainers.image.description="A naming server that speaks Nacos, with the prober inside"
COPY --from=build /out/registry/ /
COPY --from=build --chown=65532:65532 /out/data/ /data/
ENV SIDEBEAT_LISTEN=0.0.0.0:8848 SIDEBEAT_DATA=/data
EXPOSE 8848
VOLUME /data
ENTRYPOINT ["/sidebeat-registry"]
