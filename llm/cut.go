package llm

import (
	"fmt"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// Limits of the text of one tool result, in bytes. A longer one is shown by its
// beginning and its end.
const (
	MaxResult  = 32 << 10
	ResultEdge = 8 << 10
)

// CutResult returns the text of a tool result as a model reads it: whole up to
// MaxResult bytes, else its first and last ResultEdge bytes around a line that
// says how much is missing, and where the whole is when path is not empty.
func CutResult(text, path string) string {
	return Cut(text, MaxResult, ResultEdge, func(left int) string {
		if path == "" {
			return LeftOut(left, len(text))
		}
		return fmt.Sprintf("[… %d bytes left out; the whole result, %d bytes, is in %s]", left, len(text), path)
	})
}

// LeftOut is the line that stands for left of all bytes.
func LeftOut(left, all int) string {
	return fmt.Sprintf("[… %d of %d bytes left out]", left, all)
}

// Cut returns s when it has at most limit bytes. Else it returns the beginning
// and the end of s, each at most edge bytes and cut at rune borders, with a
// line of its own between them, which mark makes of the number of bytes that
// are missing.
func Cut(s string, limit, edge int, mark func(left int) string) string {
	if len(s) <= limit {
		return s
	}
	edge = min(edge, len(s)/2)
	head, tail := runeBefore(s, edge), runeAfter(s, len(s)-edge)
	return s[:head] + "\n" + mark(tail-head) + "\n" + s[tail:]
}

// runeBefore is the last border of a rune in s at or before i. What is no UTF-8
// has borders everywhere.
func runeBefore(s string, i int) int {
	for back := 0; back < utf8.UTFMax && i-back >= 0; back++ {
		if i-back == len(s) || utf8.RuneStart(s[i-back]) {
			return i - back
		}
	}
	return i
}

// runeAfter is the first border of a rune in s at or behind i.
func runeAfter(s string, i int) int {
	for on := 0; on < utf8.UTFMax; on++ {
		if i+on >= len(s) || utf8.RuneStart(s[i+on]) {
			return min(i+on, len(s))
		}
	}
	return i
}

// wrapperBytes is about what a wrapper and the frame of a message take.
const wrapperBytes = 128

// Bytes is about how many bytes of a request a record takes: what Messages
// makes of it, without building it. What Messages does not show takes none.
func Bytes(r *claybot.Record) int {
	switch r.Type {
	case claybot.RecordUser, claybot.RecordSystem, claybot.RecordSummary:
		n := wrapperBytes + len(r.MessageID) + len(r.Text) + len(r.Quote)
		for _, f := range r.Files {
			n += wrapperBytes + len(f.Name) + len(f.Text)
		}
		if r.Earlier != nil && len(r.Earlier.Said)+len(r.Earlier.Missing) > 0 {
			n += wrapperBytes + len(r.Earlier.Missing)
			for _, s := range r.Earlier.Said {
				n += wrapperBytes + len(s.Text)
			}
		}
		return n
	case claybot.RecordIndex:
		if r.Text != "" {
			return wrapperBytes + len(r.Text)
		}
	case claybot.RecordAssistant:
		return len(r.Text) + callBytes(r.ToolCalls)
	case claybot.RecordTool:
		if len(r.Text) > MaxResult {
			return 2*ResultEdge + wrapperBytes
		}
		return max(len(r.Text), len(noOutput))
	}
	return 0
}

// Tokens guesses the tokens that a number of bytes makes.
func Tokens(bytes int) int64 { return tokens(bytes) }
