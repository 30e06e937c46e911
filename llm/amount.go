package llm

import (
	"fmt"
	"strconv"
	"strings"
)

// Amount is an amount of tokens, or else of millionths of a dollar, as people read
// it.
func Amount(tokens bool, n int64) string {
	switch {
	case !tokens:
		return Dollars(n)
	case n == 1:
		return "1 token"
	}
	return Grouped(n) + " tokens"
}

// Standing returns how much of a limit is spent.
func Standing(tokens bool, spent, limit int64) string {
	switch of := Amount(tokens, limit); {
	case spent == 0:
		return "nothing of " + of + " is spent"
	case tokens:
		return Grouped(spent) + " of " + of + " are spent"
	default:
		return Dollars(spent) + " of " + of + " is spent"
	}
}

// Dollars is an amount of millionths of a dollar as people read it: whole cents from
// a dollar on, tenths of a cent below, and all digits below a cent. Only nothing is
// written as nothing.
func Dollars(micro int64) string {
	sign, n := "", uint64(micro)
	if micro < 0 {
		sign, n = "-", -n
	}
	switch {
	case n == 0:
		return "$0"
	case n < 10_000:
		return sign + "$" + strings.TrimRight(fmt.Sprintf("%.6f", float64(n)/1e6), "0")
	case n < 1_000_000:
		text := fmt.Sprintf("%.3f", float64(n)/1e6)
		return sign + "$" + strings.TrimSuffix(text, "0") // two digits at least
	}
	cents := (n + 5_000) / 10_000
	return fmt.Sprintf("%s$%s.%02d", sign, Grouped(int64(cents/100)), cents%100)
}

// Grouped is a whole number with its thousands apart.
func Grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(text) - 3; i > first; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
