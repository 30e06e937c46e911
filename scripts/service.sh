#!/usr/bin/env bash
# Installs claybot as a service of a real systemd in a container, which uses this machine's
# /usr, and checks what docs/service.md says: it runs as the owner of the data directory,
# starts again after kill -9, reads its configuration anew, stops and goes away.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
	echo "service: $1" >&2
	exit 1
}

[ -x bin/claybot ] || fail "there is no bin/claybot; run: make build"
[ -x /usr/lib/systemd/systemd ] || fail "there is no systemd; apt-get install systemd"
docker version --format '{{.Server.Version}}' >/dev/null 2>&1 || fail "no Docker engine answers"

root=$(mktemp -d)
name=claybot-service-$$
cleanup() {
	docker rm -f "$name" >/dev/null 2>&1 || true
	docker image rm -f "$name" >/dev/null 2>&1 || true
	rm -rf "$root"
}
trap cleanup EXIT
mkdir -p "$root"/{etc/systemd/system,run,tmp,var/log/journal,var/lib,root,proc,sys,dev,usr,opt/data}
for dir in bin sbin lib lib64; do
	ln -s "usr/$dir" "$root/$dir"
done
printf 'root:x:0:0::/root:/bin/sh\nclaybot:x:1500:1500::/opt:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nclaybot:x:1500:\n' >"$root/etc/group"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
chmod 755 "$root"
chmod 700 "$root/opt/data"
chown 1500:1500 "$root/opt/data"
cp bin/claybot "$root/opt/claybot"
tar -C "$root" --numeric-owner -cf - . | docker import - "$name" >/dev/null
docker run -d --name "$name" --network none --cap-add SYS_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined \
	--cgroupns=private --tmpfs /run --tmpfs /tmp -e container=docker -v /usr:/usr:ro "$name" /usr/lib/systemd/systemd >/dev/null

within() { docker exec -w /opt -e CLAYBOT_HTTP_ADDR=off -e TELEGRAM_BOT_TOKEN=1:fake "$name" "$@"; }
show() { within systemctl show claybot --property="$1" --value; }
expect() { [ "$2" = "$3" ] || fail "$1: $2, want $3"; }
# eventually WHAT WANT COMMAND... runs a command until it prints WANT.
eventually() {
	local what=$1 want=$2 got
	shift 2
	for _ in $(seq 300); do
		got=$("$@" 2>/dev/null || true)
		[ "$got" != "$want" ] || return 0
		sleep 0.2
	done
	fail "$what: $got, want $want"
}

eventually "systemd" running within systemctl is-system-running
within systemd-analyze --version >/dev/null
within ./claybot --data-dir data service install
expect "the service" "$(show ActiveState)" active
expect "its user" "$(show User)" claybot
expect "who reads its variables" "$(within stat -c '%a %U' /etc/claybot/service.env)" "600 root"
within systemd-analyze verify claybot.service
pid=$(show MainPID)
within kill -KILL "$pid"
eventually "restarts after kill -9" 1 show NRestarts
eventually "the service after kill -9" active show ActiveState
within systemctl reload claybot
eventually "lines of a reload" 1 within sh -c './claybot service logs | grep -c "configuration reloaded"'
within ./claybot --data-dir data stop
eventually "the service after claybot stop" inactive show ActiveState
within ./claybot service start
expect "the service after its start" "$(show ActiveState)" active
within ./claybot service stop
expect "the service after its stop" "$(show ActiveState)" inactive
echo "sk: [" >"$root/broken.yaml"
docker cp "$root/broken.yaml" "$name":/opt/claybot.yaml
within sh -c 'sed -i "s|\"serve\"|\"serve\" \"--config\" \"/opt/claybot.yaml\"|" /etc/systemd/system/claybot.service && systemctl daemon-reload && ! systemctl start claybot' ||
	fail "it started with a broken configuration"
expect "restarts with a broken configuration" "$(show NRestarts)" 0
within ./claybot service uninstall
within sh -c '! test -e /etc/systemd/system/claybot.service' || fail "the unit is still there"
echo "service: installed, killed, reloaded, stopped and removed under $(within systemctl --version | head -n 1)"
