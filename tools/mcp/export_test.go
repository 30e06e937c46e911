package mcp

import "github.com/claybot/claybot/workspace"

// The inside that tests reach.
var (
	StartHost    = startHost
	Plain        = plain
	Schema       = schema
	KnownContent = knownContent
)

// Redact takes the secrets and what looks like one out of text.
func Redact(secrets []string, text string) string { return newRedactor(secrets).clean(text) }

// Line is text as status and logs show it.
func Line(text string) string { return newRedactor(nil).line(text) }

var _ workspace.Process = (*hostProcess)(nil)
