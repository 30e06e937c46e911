# The image of claybot: the static binary and the certificate authorities. It has no
# shell and runs as an unprivileged user.
#
#   docker build -t claybot --build-arg VERSION="$(git describe --tags --always --dirty)" .
#
# or, which is the same: make image. Then
#
#   docker run -it -p 127.0.0.1:8420:8420 -v claybot:/var/lib/claybot claybot
#
# runs it and prints a link to log in. Cluster members compare this version while they
# are upgraded one at a time. To pin a base image, pass its digest; to get a shell for
# workspaces on the member itself, pass RUN_IMAGE=alpine:3.22.
ARG BUILD_IMAGE=golang:1.26-alpine
ARG RUN_IMAGE=scratch

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /image/usr/local/bin/claybot ./cmd/claybot \
 && mkdir -p /image/etc/ssl/certs /image/tmp /data/claybot \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && chmod 1777 /image/tmp \
 && chmod 0700 /data/claybot

FROM ${RUN_IMAGE}
COPY --from=build /image/ /
COPY deploy/image.yaml /claybot.yaml
COPY --from=build --chown=10001:10001 /data/ /var/lib/
USER 10001:10001
ENV CLAYBOT_DATA_DIR=/var/lib/claybot CLAYBOT_LOG=json
VOLUME /var/lib/claybot
EXPOSE 8420
HEALTHCHECK --interval=10s --timeout=3s --start-period=90s CMD ["/usr/local/bin/claybot", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/claybot"]
CMD ["serve"]
