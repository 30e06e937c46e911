#!/usr/bin/env bash
# Installs the clients that claybot is tested with into bin/clients, in the
# versions of web/api/testdata/clients, and the generators of clients, of which that
# for Go has its version in web/api/testdata/generated. Safe to repeat, also at the
# same time.
set -euo pipefail
cd "$(dirname "$0")/.."

from=web/api/testdata/clients
generated=web/api/testdata/generated
to=bin/clients

fail() {
	echo "clients: $1" >&2
	exit 1
}

command -v node >/dev/null && command -v npm >/dev/null || fail "there is no node with npm; apt-get install nodejs npm"

mkdir -p "$to"
exec 9>"$to/.lock"
flock 9

want=$(cat "$from/package.json" "$from/package-lock.json" "$generated/go.mod" "$generated/go.sum" | sha256sum | cut -c 1-16)
if [ "$(cat "$to/.done" 2>/dev/null || true)" = "$want" ]; then
	echo "clients: $to is up to date"
	exit 0
fi
rm -f "$to/.done"
cp "$from/package.json" "$from/package-lock.json" "$to/"
(cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null) || fail "npm cannot install the clients"
(cd "$generated" && go mod download && go build -o "../../../../$to/oapi-codegen" github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen) ||
	fail "the generator of clients for Go cannot be built"
echo "$want" >"$to/.done"
echo "clients: installed into $to"
