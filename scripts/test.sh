#!/usr/bin/env bash
# Runs all tests. Two kinds of failure are not ours, and a package with one of them is
# run once more by itself, which must pass, and said so:
#
#   - packages that drive a Docker engine or a browser wait for programs of others,
#     beside everything else that runs meanwhile;
#   - the race detector can kill a test binary: in a synctest bubble, Go 1.26 lets a
#     timer that fires and a receive from a channel timer use one context of the detector
#     at a time, which destroys it (runtime/time.go, unlockAndRun and maybeRunChan).
#
# A data race or a panic is never tried again, nor is a failure anywhere else.
#
#   scripts/test.sh [FLAG...] for go test
set -uo pipefail
cd "$(dirname "$0")/.."

# A program with the race detector sleeps for a second when it ends, in case another
# goroutine still has something to report. Thousands of them start and end here.
export GORACE="atexit_sleep_ms=0 ${GORACE-}"

outside='workspace/docker|tools/browser|devices/chromium|web/dashboard'

# One package more at a time than there are processors: the tests use less than half of the
# time of two.
at_once=$(($(getconf _NPROCESSORS_ONLN) + 1))

log=$(mktemp)
trap 'rm -f "$log"' EXIT
go test -p "$at_once" "$@" ./... 2>&1 | tee "$log"
code=${PIPESTATUS[0]}
[ "$code" = 0 ] && exit 0

# What failed, once more at the end: a package that ran out of time prints thousands of
# lines after the name of its test.
trap 'code=$?; [ "$code" = 0 ] || summary; rm -f "$log"; exit "$code"' EXIT
summary() {
	echo "test: failed:"
	awk '/^WARNING: DATA RACE/ { show = ++races == 1 } /^=+$/ { show = 0 } show' "$log" | head -n 60
	grep -aE '^[[:space:]]*--- FAIL|^panic:|^fatal error:|^WARNING: DATA RACE|^[[:space:]]+(Test|Fuzz|Example)[^ ]* \([0-9hms.]+\)$|^[[:space:]]+[a-z0-9_]+_test\.go:[0-9]+: |^FAIL[[:space:]]' "$log" | head -n 100
}

# Each line: a package, and 1 if the race detector crashed in it. What a package printed
# stands before its result.
mapfile -t failed < <(awk '
	/^ThreadSanitizer: CHECK failed/ { crash = bubble = 1 } # and it prints no goroutines
	/^SIGSEGV: segmentation violation/ { crash = 1 }        # of Go code it would be a panic
	/^goroutine .*, synctest bubble/ { bubble = 1 }
	$1 == "FAIL" && NF > 1 { print $2, crash && bubble }
	$1 == "FAIL" && NF > 1 || $1 == "ok" || $1 == "?" { crash = bubble = 0 }' "$log" | sort -u)
mapfile -t ours < <(printf '%s\n' "${failed[@]}" | grep -Ev "/($outside) 0$| 1$")
if [ "${#failed[@]}" = 0 ] || [ "${#ours[@]}" != 0 ] || grep -qE '^(WARNING: DATA RACE|panic:|fatal error:)' "$log"; then
	exit "$code"
fi
echo "test: failed beside the others, and tried once more alone: ${failed[*]% *}"
go test "$@" -p 1 "${failed[@]% *}" 2>&1 | tee -a "$log"
code=${PIPESTATUS[0]}
[ "$code" = 0 ] || exit "$code"
echo "test: passed alone; what is above is worth a look: ${failed[*]% *}"
