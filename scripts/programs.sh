#!/usr/bin/env bash
# Programs of others that tests run: the proxies of docs/proxies.md, and the promtool of Prometheus, which checks
# metrics and alerts. Installs them where this user may, without starting any; otherwise it says what is missing
# and fails. Safe to repeat.
set -euo pipefail
export PATH="$PATH:/usr/sbin"

missing=()
command -v nginx >/dev/null || missing+=(nginx-light)
command -v haproxy >/dev/null || missing+=(haproxy)
command -v caddy >/dev/null || missing+=(caddy)
command -v promtool >/dev/null || missing+=(prometheus)
[ "${#missing[@]}" = 0 ] && exit 0
[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || {
	echo "programs: ${missing[*]} cannot be installed here"
	exit 1
}
echo "programs: installing ${missing[*]}"
apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
