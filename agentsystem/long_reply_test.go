package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/texts"
)

const inFile = " …\n\n*My reply is too long for a chat. The full reply is in the attached file.*"

// A reply of more than ten messages is its beginning and a file with all of it.
func TestLongReplyIsAFile(t *testing.T) {
	t.Parallel()
	ten, eleven := strings.Repeat("a", 10*partLimit), strings.Repeat("b", 10*partLimit+1)
	clouded(t, func(r *rig, _ *cloud) {
		r.mind.plan("ten", llmtest.Say(ten))
		r.mind.plan("eleven", llmtest.Say(eleven))
		r.start()
		r.post(ann, msg("ten", "ten"))
		after(time.Minute)
		want := make([]string, 10)
		for i := range want {
			want[i] = ten[:partLimit]
		}
		r.wants(want...)
		r.post(ann, msg("eleven", "eleven"))
		after(time.Minute)
		short := eleven[:partLimit-len([]rune(inFile))] + inFile
		r.wants(append(want, short, fmt.Sprintf("<document reply.md %s> ", eleven))...)
	})
}

// noFiles stores no file.
type noFiles struct{ agentsystem.Agents }

func (noFiles) SaveFile(context.Context, claybot.AgentID, claybot.FileReference, io.Reader, int64) (claybot.FileReference, error) {
	return claybot.FileReference{}, errors.New("the disk is full")
}

// Where no file can be sent, or none be stored, the reply comes in parts.
func TestLongReplyWithoutFile(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("b", 10*partLimit+1)
	run := func(r *rig) {
		r.mind.plan("go", llmtest.Say(text))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		if got := r.chat.seen(); len(got) != 11 || strings.Join(got, "") != text {
			t.Errorf("%d messages", len(got))
		}
	}
	bubble(t, run)
	clouded(t, func(r *rig, _ *cloud) {
		r.decorate = func(s agentsystem.Stores) agentsystem.Stores {
			s.Agents = noFiles{s.Agents}
			return s
		}
		run(r)
	})
}

// A process that dies at any step around the end of the run loses nothing of a long reply, and
// sends nothing of it twice without a mark.
func TestLongReplyCrash(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("b", 10*partLimit+1)
	for n, alive := 1, false; !alive; n++ {
		clouded(t, func(r *rig, _ *cloud) {
			r.mind.plan("go", llmtest.Say(text))
			r.start()
			if alive = r.diesIn(n, msg("go", "go")); alive && n < 10 {
				t.Errorf("only %d steps", n)
			}
			files, shorts := 0, 0
			for _, p := range r.chat.seen() {
				files += strings.Count(p, "<document reply.md "+text+">")
				shorts += strings.Count(p, inFile)
			}
			if files != 1 || shorts != 1 {
				t.Errorf("death at step %d: people see %d beginnings and %d files: %.200q", n, shorts, files, r.chat.seen())
			}
		})
	}
}

// diesIn lets the process die n steps after a message of Ann has come; what dies without storing the message gets
// it again. It reports whether the process lived through all of its work. The fuse is lit before the message comes,
// because its run begins at once.
func (r *rig) diesIn(n int, m claybot.AgentMessage) (alive bool) {
	r.Helper()
	r.fuse.blowIn(n)
	err := r.system.Post(r.Context(), ann, m)
	after(time.Minute)
	if !r.fuse.dead() {
		if err != nil {
			r.Error(err)
		}
		return true
	}
	r.crash()
	r.start()
	r.post(ann, m)
	after(time.Minute)
	return false
}

// A reply that the chat refuses as a file goes out in parts, and counts as delivered.
func TestLongReplyRefusedAsFile(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("b", 10*partLimit+1)
	clouded(t, func(r *rig, _ *cloud) {
		r.mind.plan("go", llmtest.Say(text))
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
		if len(got) != 12 || !strings.HasSuffix(got[0], inFile) || strings.Join(got[1:], "") != text {
			t.Errorf("people see %d messages: %.300q", len(got), got)
		}
		if v := overview.VerdictOf(texts.Voice{}, r.receipt("go"), overview.Free); v.Outcome != overview.OutcomeAnswered {
			t.Errorf("%+v", v)
		}
		r.post(ann, command("again", "resend"))
		after(time.Minute)
		r.wants(append(got, resendNone)...)
	})
}
