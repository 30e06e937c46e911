#!/usr/bin/env bash
# A Docker engine and the small image that the tests of workspaces use. Installs
# and starts what is missing where this user may; otherwise it says what is
# missing and fails. Safe to repeat. The engine that it starts stays.
set -euo pipefail

IMAGE=claybot-test:busybox
LOG=${TMPDIR:-/tmp}/claybot-dockerd.log

answers() { docker version >/dev/null 2>&1; }

# install PACKAGE... installs from Debian's archive when this user may.
install() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	echo "docker: installing $*"
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

command -v docker >/dev/null && { answers || command -v dockerd >/dev/null; } || install docker.io iptables ca-certificates || {
	echo "docker: there is no Docker, and it cannot be installed here"
	exit 1
}
if ! answers; then
	[ "$(id -u)" = 0 ] || {
		echo "docker: no engine answers, and only root can start one"
		exit 1
	}
	echo "docker: starting an engine, which logs to $LOG"
	setsid dockerd >"$LOG" 2>&1 </dev/null &
	for _ in $(seq 60); do
		answers && break
		sleep 0.5
	done
	answers || {
		tail -n 5 "$LOG"
		echo "docker: the engine does not start"
		exit 1
	}
fi

# The image has a shell, the usual programs and nothing else.
if ! docker image inspect "$IMAGE" >/dev/null 2>&1; then
	[ -x /bin/busybox ] || install busybox-static
	root=$(mktemp -d)
	trap 'rm -rf "$root"' EXIT
	mkdir -p "$root"/{bin,etc,work,tmp,proc,sys,dev}
	chmod 1777 "$root/tmp" # a file system of memory takes its rights from there
	cp /bin/busybox "$root/bin/busybox"
	for name in $("$root/bin/busybox" --list); do
		[ "$name" = busybox ] || ln -s busybox "$root/bin/$name"
	done
	echo 'root:x:0:0::/:/bin/sh' >"$root/etc/passwd"
	echo 'worker:x:10001:10001::/work:/bin/sh' >>"$root/etc/passwd"
	tar -C "$root" -c . | docker import --change 'ENV PATH=/bin' - "$IMAGE" >/dev/null
	echo "docker: made the image $IMAGE"
fi
