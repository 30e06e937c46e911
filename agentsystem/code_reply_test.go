package agentsystem_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
)

// A snippetLine is a mediaLine that shows long code as files, unless less says that it cannot.
type snippetLine struct {
	mediaLine
	less *atomic.Bool
}

func (l snippetLine) TakesSnippets() bool { return !l.less.Load() }

// withSnippets runs a test with a chat that takes snippets.
func withSnippets(t *testing.T, test func(r *rig, less *atomic.Bool)) {
	t.Helper()
	clouded(t, func(r *rig, c *cloud) {
		less := new(atomic.Bool)
		r.line = func(l *line) connectors.Connector { return snippetLine{mediaLine{findingLine{l}, c}, less} }
		test(r, less)
	})
}

var (
	longCode  = strings.Repeat("x := 1\n", partLimit/7) + "y"
	codeReply = "Here it is:\n\n```go\n" + longCode + "\n```\n\nand\n\n```py\n" + longCode + "\n```\n\n```go\nshort\n```"
	codeShort = "Here it is:\n\n*The code is too long for a message. It is in the attached file code.go.*\n\nand\n\n" +
		"*The code is too long for a message. It is in the attached file code-2.py.*\n\n```go\nshort\n```"
	codeFiles = []string{"<document code.go " + longCode + "> ", "<document code-2.py " + longCode + "> "}
)

// Code that does not fit into a message is a file, where the chat shows it so; the reply says where. Elsewhere
// it stays in the text, as does shorter code.
func TestLongCodeIsAFile(t *testing.T) {
	t.Parallel()
	withSnippets(t, func(r *rig, less *atomic.Bool) {
		r.mind.plan("go", llmtest.Say(codeReply))
		r.mind.plan("again", llmtest.Say(codeReply))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		want := append([]string{codeShort}, codeFiles...)
		r.wants(want...)
		less.Store(true)
		r.post(ann, msg("again", "again"))
		after(time.Minute)
		if got := r.chat.seen()[len(want):]; strings.Join(got, "") != codeReply {
			t.Errorf("without the scope people see %q", got)
		}
	})
	clouded(t, func(r *rig, _ *cloud) {
		r.mind.plan("go", llmtest.Say(codeReply))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		if got := r.chat.seen(); strings.Join(got, "") != codeReply {
			t.Errorf("a chat without snippets shows %q", got)
		}
	})
}

// A reply with too much code for a file each is one file as a whole, and names no others.
func TestMuchLongCode(t *testing.T) {
	t.Parallel()
	withSnippets(t, func(r *rig, _ *atomic.Bool) {
		text := "Here:" + strings.Repeat("\n\n```go\n"+longCode+"\n```", 10)
		r.mind.plan("go", llmtest.Say(text))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		got := r.chat.seen()
		if len(got) != 2 || !strings.HasPrefix(got[0], text[:partLimit/2]) || !strings.HasSuffix(got[0], inFile) || got[1] != "<document reply.md "+text+"> " {
			t.Errorf("people see %q", got)
		}
	})
}

// A process that dies at any step around the end of the run loses nothing of the code, and sends none of it twice.
func TestLongCodeCrash(t *testing.T) {
	t.Parallel()
	for n, alive := 0, false; !alive; n++ {
		withSnippets(t, func(r *rig, _ *atomic.Bool) {
			r.mind.plan("go", llmtest.Say(codeReply))
			r.start()
			alive = r.diesIn(n+1, msg("go", "go"))
			if alive && n < 10 {
				t.Errorf("only %d steps", n)
			}
			all := strings.Join(r.chat.seen(), "")
			for _, part := range append([]string{codeShort}, codeFiles...) {
				if strings.Count(all, part) != 1 {
					t.Errorf("death at step %d: people see %.40q %d times: %.300q", n+1, part, strings.Count(all, part), r.chat.seen())
				}
			}
		})
	}
}

// Code that the chat refuses as a file comes as a fence, in parts.
func TestLongCodeRefusedAsFile(t *testing.T) {
	t.Parallel()
	withSnippets(t, func(r *rig, _ *atomic.Bool) {
		r.mind.plan("go", llmtest.Say(codeReply))
		r.chat.judge = func(o claybot.Outgoing) verdict {
			if o.File != nil {
				return refused(false)
			}
			return verdict{}
		}
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		got := r.chat.seen()
		fence := func(lang string) string { return "```" + lang + "\n" + longCode + "\n```" }
		if all := strings.Join(got, ""); all != codeShort+fence("go")+fence("py") {
			t.Errorf("people see %q", got)
		}
	})
}

// Code that has nothing but blank lines is no file: Slack takes none that is empty, and what follows would wait.
func TestBlankCodeIsNoFile(t *testing.T) {
	t.Parallel()
	blank := "Here it is:\n\n```go\n" + strings.Repeat("\n", partLimit+1) + "```\n\nDone."
	withSnippets(t, func(r *rig, _ *atomic.Bool) {
		r.mind.plan("go", llmtest.Say(blank))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		if got := strings.Join(r.chat.seen(), ""); got != blank {
			t.Errorf("people see %q", got)
		}
	})
}
