# One image per program:
#   docker build --target agent    --build-arg VERSION=$(git describe --tags --always) -t sidebeat-agent .
#   docker build --target prober   ... -t sidebeat-prober .
#   docker build --target registry ... -t sidebeat-registry .
# .ci/rootfs.sh lays out what goes in; .ci/image.sh proves it without an engine.

# Any Go from 1.26 will do here: GO_TOOLCHAIN is the one that compiles. It is
# the newest patched one, because 1.26.8 has known faults in net/http and TLS.
ARG GO_IMAGE=golang:1.26
ARG GO_TOOLCHAIN=go1.27.3

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
ARG GO_TOOLCHAIN
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
ENV GOTOOLCHAIN=${GO_TOOLCHAIN} GOOS=${TARGETOS} GOARCH=${TARGETARCH}
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN .ci/rootfs.sh /out

FROM scratch AS agent
ARG VERSION=dev
LABEL org.opencontainers.image.title="sidebeat-agent" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/agent/ /
USER 65532:65532
ENTRYPOINT ["/sidebeat-agent"]

FROM scratch AS prober
ARG VERSION=dev
LABEL org.opencontainers.image.title="sidebeat-prober" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/prober/ /
USER 65532:65532
ENTRYPOINT ["/sidebeat-prober"]

FROM scratch AS registry
ARG VERSION=dev
LABEL org.opencontainers.image.title="sidebeat-registry" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/registry/ /
COPY --from=build --chown=65532:65532 /out/data/ /data/
USER 65532:65532
ENV SIDEBEAT_LISTEN=0.0.0.0:8848 SIDEBEAT_DATA=/data
EXPOSE 8848
VOLUME /data
ENTRYPOINT ["/sidebeat-registry"]
