package connectors

import (
	"fmt"
	"strings"
	"time"
)

// gapShown is how long the health reports a gap.
const gapShown = 24 * time.Hour

// A Gap is a period without a connection in which messages may have been lost.
type Gap struct {
	From, To time.Time
	Chats    int // that got a notice
	Reason   string
	Unread   int    // conversations and threads that were not read and got none
	Unlisted string // why new conversations or threads of the gap are not known
}

// Silent reports whether the gap has nothing to report to operators.
func (g *Gap) Silent() bool { return g.Chats == 0 && g.Unread == 0 && g.Unlisted == "" }

// Report is what the health of a connector says of the gap for a day, empty afterwards and for nil.
// others are the messages that may be missing where Unlisted says why.
func (g *Gap) Report(connector, others string) string {
	if g == nil || time.Since(g.To) >= gapShown {
		return ""
	}
	const layout = "2006-01-02 15:04"
	var b strings.Builder
	fmt.Fprintf(&b, "%s: no connection from %s to %s UTC", connector, g.From.UTC().Format(layout), g.To.UTC().Format(layout))
	if g.Chats > 0 {
		fmt.Fprintf(&b, "; messages to %d conversations may be missing (%s); each was told", g.Chats, g.Reason)
	}
	if g.Unread > 0 {
		fmt.Fprintf(&b, "; %d more conversations or threads were neither read nor notified", g.Unread)
	}
	if g.Unlisted != "" {
		fmt.Fprintf(&b, "; %s may be missing (%s)", others, g.Unlisted)
	}
	return b.String()
}
