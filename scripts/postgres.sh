#!/usr/bin/env bash
# The programs of a PostgreSQL server, for the tests of many nodes, which start
# servers of their own. Installs them where this user may, without a server of the
# system; otherwise it says what is missing and fails. Prints where they are. Safe
# to repeat.
set -euo pipefail

# found prints the folder of the newest installation that can make and run a server.
found() {
	local dir
	for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) "$(dirname "$(command -v postgres || echo /nowhere/postgres)")"; do
		if [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] && [ -x "$dir/pg_basebackup" ]; then
			echo "$dir"
			return 0
		fi
	done
	return 1
}

# install installs Debian's newest release. Its scripts would make and start a server
# of the system (a cluster), which nobody wants here.
install() {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
	echo "postgres: installing postgresql"
	mkdir -p /etc/postgresql-common/createcluster.d
	[ -e /etc/postgresql-common/createcluster.d/claybot.conf ] ||
		echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/claybot.conf
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
}

found >/dev/null || install || {
	echo "postgres: there are no programs of a PostgreSQL server, and they cannot be installed here"
	exit 1
}
dir=$(found) || {
	echo "postgres: the package has no server"
	exit 1
}
# PostgreSQL does not run as root; for root the tests use this user.
if [ "$(id -u)" = 0 ] && ! id postgres >/dev/null 2>&1; then
	echo "postgres: there is no user postgres, as whom root can run a server"
	exit 1
fi
echo "postgres: $("$dir/postgres" --version), in $dir"

# A pooler, for the one test of what stands between.
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || {
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null &&
		apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends pgbouncer >/dev/null
} || echo "postgres: no pgbouncer; the test with a pooler is skipped, and fails with CI=true"
