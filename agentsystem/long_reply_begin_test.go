package agentsystem_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
)

// An apartLine is a mediaLine that cuts long texts at blank lines, as Slack's ends a part before a long table.
type apartLine struct{ mediaLine }

func (l apartLine) Split(text string) (parts []string) {
	if len(text) <= partLimit {
		return []string{text}
	}
	for part := range strings.SplitSeq(text, "\n\n") {
		parts = append(parts, l.mediaLine.Split(part)...)
	}
	return parts
}

// The beginning of a reply in a file has all of its first message, also where that is shorter than the note about
// the file.
func TestLongReplyBeginsShort(t *testing.T) {
	t.Parallel()
	text := "Here it is:\n\n" + strings.Repeat("b", 10*partLimit+1)
	clouded(t, func(r *rig, c *cloud) {
		r.line = func(l *line) connectors.Connector { return apartLine{mediaLine{findingLine{l}, c}} }
		r.mind.plan("go", llmtest.Say(text))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		r.wants("Here it is:"+inFile, fmt.Sprintf("<document reply.md %s> ", text))
	})
}

// The beginning of a reply in a file names no other file: all of its code is in that one.
func TestLongReplyWithCode(t *testing.T) {
	t.Parallel()
	text := "Here they are:" + strings.Repeat("\n\n```go\n"+longCode+"\n```", 10)
	withSnippets(t, func(r *rig, _ *atomic.Bool) {
		r.mind.plan("go", llmtest.Say(text))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		got := r.chat.seen()
		if len(got) != 2 || !strings.HasSuffix(got[0], inFile) || strings.Contains(got[0], "code.go") || got[1] != fmt.Sprintf("<document reply.md %s> ", text) {
			t.Errorf("people see %d messages: %.200q", len(got), got)
		}
	})
}
