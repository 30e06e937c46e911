package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/profiles"
)

// aloud says texts, and counts them.
func aloud(n *atomic.Int64) func(context.Context, claybot.Run, string) (llm.Recording, error) {
	return func(_ context.Context, _ claybot.Run, text string) (llm.Recording, error) {
		n.Add(1)
		return llm.Recording{Audio: []byte("says " + text), Model: "tts", Usage: claybot.Usage{LLMCalls: 1, Unpriced: 1}}, nil
	}
}

// A reply is spoken beside its text where the profile says so, and never in place of it.
func TestVoiceReplies(t *testing.T) {
	t.Parallel()
	const said = "<voice reply.ogg says "
	failing := func(err error) func(context.Context, claybot.Run, string) (llm.Recording, error) {
		return func(context.Context, claybot.Run, string) (llm.Recording, error) { return llm.Recording{}, err }
	}
	voiced := withFiles("m", "", from("m", "voice.ogg", claybot.FileVoice))
	for name, tt := range map[string]struct {
		set   string
		m     claybot.AgentMessage
		reply string
		speak func(context.Context, claybot.Run, string) (llm.Recording, error)
		want  []string
	}{
		"off":                {"off", voiced, "**yes**", nil, []string{"**yes**"}},
		"to a voice message": {profiles.VoiceReply, voiced, "**yes**", nil, []string{"**yes**", said + "yes> "}},
		"to a text":          {profiles.VoiceReply, msg("m", "hello"), "**yes**", nil, []string{"**yes**"}},
		"always":             {profiles.VoiceAlways, msg("m", "hello"), "**yes**", nil, []string{"**yes**", said + "yes> "}},
		"code alone":         {profiles.VoiceAlways, msg("m", "hello"), "```\nx\n```", nil, []string{"```\nx\n```"}},
		"no reply":           {profiles.VoiceAlways, msg("m", "hello"), "NO_REPLY", nil, nil},
		"too long":           {profiles.VoiceAlways, msg("m", "hello"), strings.Repeat("a b ", 1025), nil, nil},
		"failing":            {profiles.VoiceAlways, msg("m", "hello"), "yes", failing(llm.Failed(llm.Transient, "broken")), []string{"yes"}},
		"over the budget":    {profiles.VoiceAlways, msg("m", "hello"), "yes", failing(&llm.LimitError{Name: "budget", Text: "it is used up"}), []string{"yes"}},
		"panicking": {profiles.VoiceAlways, msg("m", "hello"), "yes", func(context.Context, claybot.Run, string) (llm.Recording, error) {
			panic("broken")
		}, []string{"yes"}},
		"hanging": {profiles.VoiceAlways, msg("m", "hello"), "yes", func(ctx context.Context, _ claybot.Run, _ string) (llm.Recording, error) {
			<-ctx.Done()
			return llm.Recording{}, context.Cause(ctx)
		}, []string{"yes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clouded(t, func(r *rig, c *cloud) {
				var n atomic.Int64
				c.files["m"] = []byte("hello?")
				r.transcribe = func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
					return llm.Speech{Text: "hello"}, nil
				}
				if r.sayer = tt.speak; r.sayer == nil {
					r.sayer = aloud(&n)
				}
				r.profile.VoiceReplies = tt.set
				r.mind.plan("hello", llmtest.Say(tt.reply))
				r.start()
				r.post(ann, tt.m)
				after(time.Minute)
				got := r.chat.seen()
				if name == "too long" {
					if len(got) != 7 || n.Load() > 0 {
						t.Errorf("people see %d messages, %d texts were spoken", len(got), n.Load())
					}
				} else if !slices.Equal(got, tt.want) {
					t.Errorf("people see %q, want %q", got, tt.want)
				}
				if run := r.receipt("m").Run; run == nil || run.State != claybot.RunSucceeded || run.Usage.Unpriced < n.Load() {
					t.Errorf("the run is %+v; %d texts were spoken", run, n.Load())
				}
			})
		})
	}
}

// A speech server that hangs delays one reply by ten seconds. Then replies are text at once for five
// minutes, which is logged once, and one reply tries again.
func TestVoiceRepliesPause(t *testing.T) {
	t.Parallel()
	clouded(t, func(r *rig, _ *cloud) {
		var logs lockedText
		var asked atomic.Int64
		var works atomic.Bool
		say := aloud(&asked)
		r.logs, r.profile.VoiceReplies = &logs, profiles.VoiceAlways
		r.sayer = func(ctx context.Context, run claybot.Run, text string) (llm.Recording, error) {
			spoken, err := say(ctx, run, text)
			if works.Load() {
				return spoken, err
			}
			<-ctx.Done()
			return llm.Recording{}, ctx.Err()
		}
		r.start()
		for i, tt := range []struct {
			pause        time.Duration // before the message
			within, then time.Duration
			works        bool
			asked        int64
			seen         int
		}{
			{0, 8 * time.Second, 12 * time.Second, false, 1, 1},
			{0, 0, 2 * time.Second, false, 1, 2},
			{4 * time.Minute, 0, 2 * time.Second, true, 1, 3},
			{time.Minute, 8 * time.Second, 12 * time.Second, false, 2, 4},
			{4 * time.Minute, 0, 2 * time.Second, true, 2, 5},
			{time.Minute, 0, 2 * time.Second, true, 3, 7}, // with the voice message
			{0, 0, 2 * time.Second, true, 4, 9},
		} {
			after(tt.pause)
			works.Store(tt.works)
			before := len(r.chat.seen())
			r.post(ann, msg(fmt.Sprint("m", i), "hello"))
			if after(tt.within); tt.within > 0 && len(r.chat.seen()) != before {
				t.Errorf("message %d: answered before the bound: %q", i, r.chat.seen())
			}
			after(tt.then - tt.within)
			if got := len(r.chat.seen()); got != tt.seen || asked.Load() != tt.asked {
				t.Errorf("message %d: people see %d messages, want %d; %d texts were to be spoken, want %d", i, got, tt.seen, asked.Load(), tt.asked)
			}
		}
		if n := strings.Count(logs.String(), "speech paused"); n != 1 || strings.Contains(logs.String(), "not spoken") {
			t.Errorf("logged %d pauses:\n%s", n, logs.String())
		}
	})
}

// A voice message that cannot be sent, or whose fate is unknown, leaves the text alone: people read
// no notice, and never get it twice.
func TestVoiceRepliesThatAreNotSent(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"refused":   &connectors.PermanentError{Err: errors.New("voice messages are forbidden")},
		"ambiguous": &connectors.AmbiguousError{Err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) {
				var n, sends atomic.Int64
				r.sayer, r.profile.VoiceReplies = aloud(&n), profiles.VoiceAlways
				r.line = func(l *line) connectors.Connector { return deafLine{wire{l}, fault, &sends} }
				r.start()
				r.say("hello")
				after(time.Hour)
				r.wants("re: hello")
				if n.Load() != 1 || sends.Load() != 1 {
					t.Errorf("%d texts were spoken, %d sends", n.Load(), sends.Load())
				}
			})
		})
	}
}

// A deafLine sends no file, and sends again what is not to be sent once.
type deafLine struct {
	wire
	fault error
	sends *atomic.Int64
}

func (l deafLine) SendFile(context.Context, claybot.Outgoing, func() (io.ReadCloser, error)) (string, error) {
	l.sends.Add(1)
	return "", l.fault
}

func (deafLine) Resend(o claybot.Outgoing) bool { return !o.Once }

// unsureLine takes files, and cannot look up what became of them.
type unsureLine struct{ wire }

func (unsureLine) Resend(o claybot.Outgoing) bool { return !o.Once }

// Wherever the process dies, people get the text once, or once more with the mark, and the voice
// message once; where its send has an unknown fate, once or not at all. What was
// kept is not spoken again.
func TestVoiceRepliesAfterACrash(t *testing.T) {
	for name, tt := range map[string]struct {
		line  func(*line) connectors.Connector
		finds bool
	}{
		"finds": {func(l *line) connectors.Connector {
			return mediaLine{findingLine{l}, &cloud{}}
		}, true},
		"does not find": {func(l *line) connectors.Connector { return unsureLine{wire{l}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			steps := 0
			for k := -1; k < steps || k < 0; k++ {
				bubble(t, func(r *rig) {
					var n atomic.Int64
					r.line, r.sayer, r.profile.VoiceReplies = tt.line, aloud(&n), profiles.VoiceAlways
					if k >= 0 {
						r.blowAfter = k
					}
					r.mind.plan("hello", llmtest.Say("the answer"))
					write := func() {
						for !r.fuse.dead() && r.system.Post(r.Context(), ann, msg("hello", "hello")) != nil {
							time.Sleep(time.Second)
						}
						after(10 * time.Minute)
					}
					r.start()
					write()
					if k < 0 {
						steps = len(r.fuse.steps)
					} else {
						before, kept := n.Load(), slices.Contains(r.fuse.steps, "save file")
						r.mind.plan("hello", llmtest.Say("the answer"))
						r.crash()
						r.start()
						write()
						if kept && n.Load() > before {
							t.Errorf("dead after %d: spoken again", k)
						}
					}
					synctest.Wait()
					texts, voices := 0, 0
					for _, s := range r.chat.seen() {
						switch {
						case strings.HasPrefix(s, "<voice"):
							voices++
						case strings.Contains(s, "the answer"):
							texts++
						default:
							t.Errorf("dead after %d: people see %q", k, s)
						}
					}
					if texts != 1 && (tt.finds || texts != 2) || voices != 1 && (tt.finds || voices != 0) {
						t.Errorf("dead after %d: people see %q; steps %q", k, r.chat.seen(), r.fuse.steps)
					}
				})
			}
			if steps < 8 {
				t.Fatal(fmt.Sprint("only ", steps, " steps: the test does not see them"))
			}
		})
	}
}
