#!/usr/bin/env bash
# Installs what the tests need beside Go: a C compiler for the race detector, a
# Chromium for the web page, a Docker engine for workspaces, PostgreSQL for many
# nodes, OpenAI and MCP clients of Node.js, and proxies. Where that is not possible it says what will
# be missing. Safe to repeat.
set -euo pipefail
cd "$(dirname "$0")/.."

# have NAME... tells whether one of the programs is there.
have() {
	for name in "$@"; do
		command -v "$name" >/dev/null && return 0
	done
	return 1
}

# install PACKAGE... installs from Debian's archive when this user may.
install() {
	[ "$(id -u)" = 0 ] && have apt-get || return 1
	echo "setup: installing $*"
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# without WHAT says what is missing; where all tests must run, that is an error.
without() {
	echo "setup: $1"
	if [ "${CI:-}" = true ]; then
		echo "setup: with CI=true that must not be" >&2
		exit 1
	fi
}

have cc gcc || install gcc libc6-dev || without "no C compiler; the tests run without the race detector"
have chromium chromium-browser google-chrome || install chromium || without "no Chromium; the tests of the web page in a browser are skipped"
./scripts/docker.sh || without "no Docker engine; the tests of workspaces in containers are skipped"
./scripts/browser-image.sh || without "no image with Chromium; the tests of a browser in a container are skipped"
{ have node && have npm; } || install nodejs npm || true
./scripts/clients.sh || without "no OpenAI and MCP clients of Node.js; the tests with them are skipped"
./scripts/programs.sh || without "no nginx, HAProxy, Caddy or promtool; the tests with them are skipped"
./scripts/postgres.sh || without "no PostgreSQL; the tests of many nodes are skipped"
