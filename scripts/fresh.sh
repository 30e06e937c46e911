#!/usr/bin/env bash
# Runs the two commands of the README on a bare Debian that has only Go, make and apt,
# in a root file system of its own made by debootstrap.
#
#   scripts/fresh.sh         make run and make test, as root and as a user without rights
#   scripts/fresh.sh short   make run as a user without rights, and the tests of the
#                            packages that use Docker, Chromium, PostgreSQL or cc
#
# Needs root. Nothing is left behind but a base image and a build cache below
# ${XDG_CACHE_HOME:-~/.cache}/claybot, which make the next time quicker.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-full}
suite=bookworm
cache=${XDG_CACHE_HOME:-$HOME/.cache}/claybot
ready_within=${FRESH_READY:-900} # seconds that make run may take to build and start
tools=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# These skip where what they drive is missing, and must say so instead of failing.
touchy=(./workspace/... ./tools/mcp ./tools/browser ./tools/shell ./devices/chromium ./runs/explore
	./storage/postgres/... ./storage/files ./web/dashboard)

# skip ends where this user or this system cannot do it, with a line that says why.
skip() {
	echo "fresh: skipped, $1"
	exit 0
}

# without ends where root on a Debian lacks something: with CI=true that is an error.
without() {
	[ "${CI:-}" = true ] || skip "$1"
	echo "fresh: failed, $1, and with CI=true that must not be" >&2
	exit 1
}

step() { printf 'fresh: %s (%ss)\n' "$1" "$SECONDS"; }

# base makes the bare system once.
base() {
	[ ! -s "$cache/fresh-$suite.tar" ] || return 0
	command -v debootstrap >/dev/null ||
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null; } ||
		without "debootstrap cannot be installed here"
	local from
	from=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" | head -n 1)
	[ -n "$from" ] || without "apt knows no archive of Debian's $suite"
	step "building a bare $suite"
	mkdir -p "$cache"
	debootstrap --variant=minbase --include=make,ca-certificates "$suite" "$work/root" "$from" >"$work/debootstrap.log" 2>&1 ||
		{ tail -n 5 "$work/debootstrap.log"; without "debootstrap failed"; }
	tar -C "$work/root" -cf "$cache/fresh-$suite.tar.new" .
	mv "$cache/fresh-$suite.tar.new" "$cache/fresh-$suite.tar"
	rm -rf "$work/root"
}

# furnish gives the system what a fresh machine has: Go, names, certificates, a user,
# and a clone of this tree. Modules that are here already need not be fetched again.
furnish() {
	mkdir -p "$root"
	tar -C "$root" -xf "$cache/fresh-$suite.tar"
	mkdir -p "$root"/{usr/local/go,go/mod,go/build,go/root-build,proc,dev}
	mount --bind "$(go env GOROOT)" "$root/usr/local/go"
	mount -o remount,bind,ro "$root/usr/local/go"
	mount --bind "$(go env GOMODCACHE)" "$root/go/mod"
	mkdir -p "$cache/fresh-build"
	mount --bind "$cache/fresh-build" "$root/go/build"
	mount -t proc proc "$root/proc"
	mount --rbind /dev "$root/dev"
	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	[ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
	echo 'newcomer:x:1000:1000::/home/newcomer:/bin/bash' >>"$root/etc/passwd"
	echo 'newcomer:x:1000:' >>"$root/etc/group"
	mkdir -p "$root/home/newcomer"
	git clone -q . "$root/home/newcomer/claybot"
	cp -r "$root/home/newcomer/claybot" "$root/root/claybot"
	chown -R 1000:1000 "$root/home/newcomer" "$root/go/build"
}

# as USER COMMAND runs a command there as root or newcomer, in the clone of that user.
as() {
	local home=/root spec=0:0 build=/go/root-build
	[ "$1" = root ] || home=/home/newcomer spec=1000:1000 build=/go/build
	env -i HOME="$home" PATH="/usr/local/go/bin:$tools" LANG=C.UTF-8 GOMODCACHE=/go/mod GOCACHE="$build" \
		GOPROXY="$(go env GOPROXY)" GOFLAGS="${GOFLAGS:-}" DEBIAN_FRONTEND=noninteractive \
		chroot --userspec="$spec" "$root" bash -c "cd ~/claybot && $2"
}

# first_reply starts the daemon with the README's command, asks it something, and ends
# it with Ctrl-C.
first_reply() {
	step "make run, as $1"
	as "$1" 'make run' >"$work/run.log" 2>&1 &
	local daemon=$! reply deadline=$((SECONDS + ready_within))
	until grep -q '"msg":"ready"\|ready' "$work/run.log"; do
		kill -0 "$daemon" 2>/dev/null || { cat "$work/run.log"; echo "fresh: make run ended before it was ready"; exit 1; }
		[ "$SECONDS" -lt "$deadline" ] || { tail -n 20 "$work/run.log"; echo "fresh: make run was not ready within $ready_within s"; exit 1; }
		sleep 0.2
	done
	step "ready, as $1"
	reply=$(as "$1" 'echo hello | ./bin/claybot chat' 2>&1) || { echo "$reply"; echo "fresh: there is no first reply"; exit 1; }
	[ -n "$reply" ] || { echo "fresh: the first reply is empty"; exit 1; }
	printf '%s\n' "$reply" | head -n 3 | sed 's/^/fresh: > /'
	pkill -INT -P "$(pgrep -P "$daemon" -x make || echo "$daemon")" claybot || pkill -INT -x claybot
	wait "$daemon" || { tail -n 5 "$work/run.log"; echo "fresh: Ctrl-C did not end in order"; exit 1; }
	step "first reply, as $1"
}

# inside runs where the mounts are private and every process ends with this one.
inside() {
	furnish
	for command in 'make run' 'make test'; do
		grep -q "^$command " README.md || { echo "fresh: the README does not name $command"; exit 1; }
	done
	first_reply newcomer
	if [ "$mode" = short ]; then
		step "tests whose programs are missing"
		as newcomer "go test ${touchy[*]}"
		step "done"
		return
	fi
	step "make test, as newcomer"
	as newcomer 'make test'
	first_reply root
	step "make test, as root"
	as root 'make test'
	step "done"
}

case "$mode" in
full | short)
	[ "$(id -u)" = 0 ] || skip "only root can make a root file system"
	command -v apt-get >/dev/null && command -v unshare >/dev/null || skip "it needs apt-get and unshare"
	work=$(mktemp -d)
	trap 'rm -rf --one-file-system "$work"' EXIT
	base
	FRESH_WORK=$work unshare --mount --pid --fork --kill-child --mount-proc bash "$0" "inside-$mode"
	;;
inside-*)
	mode=${mode#inside-} work=$FRESH_WORK root=$FRESH_WORK/root
	inside
	;;
*)
	echo "usage: scripts/fresh.sh [full|short]" >&2
	exit 2
	;;
esac
