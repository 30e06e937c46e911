#!/usr/bin/env bash
# Runs each fuzz target of the module for the time given (10s), one after
# another, because go test fuzzes one target at a time.
set -euo pipefail
budget=${1:-10s}

grep -rEl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	grep -hoE '^func Fuzz[A-Za-z0-9_]+' "$dir"/*_test.go | sed 's/^func //' | sort | while read -r target; do
		echo "== $dir $target"
		go test -run='^$' -fuzz="^$target\$" -fuzztime="$budget" -fuzzminimizetime=1s "$dir" </dev/null
	done
done
