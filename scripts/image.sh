#!/usr/bin/env bash
# Builds the image of the Dockerfile on base images made here, of this machine's Go
# and modules, so nothing is downloaded; then starts a container of it, read-only and
# without privileges, and waits until its health check passes and the demo model
# answers; then one with a published port and a terminal, and logs in with the link that
# it prints. Needs a Docker engine and curl; see docker.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

base=claybot-test:golang
image=claybot-test:image

fail() {
	echo "image: $1" >&2
	exit 1
}
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || fail "no Docker engine answers"
[ -x /bin/busybox ] || fail "there is no /bin/busybox; apt-get install busybox-static"

root=$(mktemp -d)
container=
cleanup() {
	[ -z "$container" ] || docker rm -f -v "$container" >/dev/null
	rm -rf "$root"
}
trap cleanup EXIT

# A Go image as the Dockerfile expects one: a shell, Go, and certificates. Its module
# proxy is a folder.
go mod download
mkdir -p "$root"/{bin,etc/ssl/certs,tmp,usr/local/go,proxy}
chmod 1777 "$root/tmp"
cp /bin/busybox "$root/bin/"
for name in $(/bin/busybox --list); do [ "$name" = busybox ] || ln -s busybox "$root/bin/$name"; done
goroot=$(go env GOROOT)
cp -r "$goroot"/{bin,pkg,src,VERSION,go.env} "$root/usr/local/go/"
cp -r "$(go env GOMODCACHE)/cache/download/." "$root/proxy/"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
tar -C "$root" --numeric-owner --owner=0 --group=0 -c . | docker import \
	--change 'ENV PATH=/usr/local/go/bin:/bin' --change 'ENV HOME=/tmp' --change 'ENV GOTOOLCHAIN=local' \
	--change 'ENV GOPROXY=file:///proxy' --change 'ENV GOSUMDB=off' - "$base" >/dev/null

docker build -q --network none --build-arg BUILD_IMAGE="$base" --build-arg VERSION=v0.0.0-image -t "$image" . >/dev/null
docker image rm "$base" >/dev/null

# What the image promises.
docker run --rm --network none "$image" version | grep -q v0.0.0-image || fail "the version is not the one that was passed"
user=$(docker image inspect --format '{{.Config.User}}' "$image")
[ "$user" = 10001:10001 ] || fail "the image runs as $user"
if docker run --rm --network none --entrypoint sh "$image" -c true 2>/dev/null; then
	fail "the image has a shell"
fi

container=$(docker run -d --network none --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges --health-interval 1s "$image")
for _ in $(seq 120); do
	state=$(docker inspect --format '{{.State.Status}} {{.State.Health.Status}}' "$container")
	[ "$state" != "running healthy" ] || break
	case $state in exited*) docker logs "$container"; fail "the container ended" ;; esac
	sleep 0.5
done
[ "$state" = "running healthy" ] || fail "the container is $state"
reply=$(docker exec "$container" /usr/local/bin/claybot chat -m hello)
case $reply in *demo*) ;; *) fail "the demo model answers: $reply" ;; esac
docker stop -t 30 "$container" >/dev/null
code=$(docker inspect --format '{{.State.ExitCode}}' "$container")
[ "$code" = 0 ] || fail "the container ended with exit code $code"
docker rm -f -v "$container" >/dev/null

# docker run -it -p 8420:8420, with a free port of this machine in place of its 8420.
container=$(docker run -d -t -p 127.0.0.1::8420 "$image")
port=$(docker port "$container" 8420/tcp | head -1)
page() { curl -sS -o /dev/null -w '%{http_code}' --max-time 20 --connect-to "127.0.0.1:8420:127.0.0.1:${port##*:}" "$@"; }
for _ in $(seq 120); do
	link=$(docker logs "$container" 2>&1 | grep -o 'http://127.0.0.1:8420/login?token=[A-Za-z0-9_-]*' || true)
	[ -z "$link" ] || break
	sleep 0.5
done
[ -n "$link" ] || fail "the container prints no link: $(docker logs "$container" 2>&1)"
code=$(page "$link")
[ "$code" = 200 ] || fail "the link is answered with $code"
login() { page -H 'Content-Type: application/json' -d "{\"token\": \"$1\"}" http://127.0.0.1:8420/login; }
code=$(login "$link")
[ "$code" = 204 ] || fail "the link logs in with $code"
code=$(login "$(docker exec "$container" /usr/local/bin/claybot open)")
[ "$code" = 204 ] || fail "the link of claybot open logs in with $code"

echo "image: built, healthy, answered and stopped ($(docker image inspect --format '{{.Size}}' "$image" | awk '{ printf "%.0f MB", $1 / 1e6 }'))"
