#!/usr/bin/env bash
# Runs all tests. Those that drive a Docker engine or a browser wait for programs that
# are not ours, beside everything else that runs meanwhile; when one of these packages
# alone has failed, it is run once more by itself, which must pass, and said so. A data
# race or a panic is never tried again, nor is a failure anywhere else.
#
#   scripts/test.sh [FLAG...] for go test
set -uo pipefail
cd "$(dirname "$0")/.."

# A program with the race detector sleeps for a second when it ends, in case another
# goroutine still has something to report. Thousands of them start and end here.
export GORACE="atexit_sleep_ms=0 ${GORACE-}"

outside='workspace/docker|tools/browser|devices/chromium|web/dashboard'

log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test "$@" ./... 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
[ "$code" = 0 ] && exit 0

mapfile -t failed < <(awk '$1 == "FAIL" && NF > 1 { print $2 }' "$log" | sort -u)
mapfile -t others < <(printf '%s\n' "${failed[@]}" | grep -Ev "/($outside)$")
if [ "${#failed[@]}" = 0 ] || [ "${#others[@]}" != 0 ] || grep -qE '^(WARNING: DATA RACE|panic:|fatal error:)' "$log"; then
	exit "$code"
fi
echo "test: failed beside the others, and tried once more alone: ${failed[*]}"
go test "$@" -p 1 "${failed[@]}" || exit
echo "test: passed alone; what is above is worth a look: ${failed[*]}"
