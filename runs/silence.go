package runs

import "strings"

const (
	// noReply is the word with which an agent says nothing.
	noReply = "NO_REPLY"
	// noReplyTrim is what models put around that word.
	noReplyTrim = " \t\r\n\"'`*."
)

// IsNoReply reports whether a text is the word with which an agent says nothing.
func IsNoReply(text string) bool {
	return strings.EqualFold(strings.Trim(text, noReplyTrim), noReply)
}

// MayBeNoReply reports whether a text may become that word as it grows.
func MayBeNoReply(text string) bool {
	return strings.HasPrefix(noReply, strings.ToUpper(strings.Trim(text, noReplyTrim)))
}
