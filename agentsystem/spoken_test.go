package agentsystem_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
)

// listening is a rig in which bob's agent waits for the answer to a question, and whose
// transcripts are what the recordings hold.
func listening(t *testing.T, kind claybot.QuestionType, test func(r *rig, c *cloud, q claybot.Question)) {
	t.Helper()
	bubble(t, func(r *rig) {
		c := &cloud{files: make(map[string][]byte), errs: make(map[string][]error)}
		r.transcribe = func(_ context.Context, run claybot.Run, _ claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error) {
			if run.ID == "" {
				t.Error("a recording is transcribed for no run")
			}
			body, err := open()
			if err != nil {
				return llm.Speech{}, err
			}
			data, err := io.ReadAll(body)
			c.mu.Lock()
			c.heard = append(c.heard, string(data))
			c.mu.Unlock()
			if string(data) == "noise" {
				err = errors.New("nothing to hear")
			}
			return llm.Speech{Text: string(data)}, errors.Join(err, body.Close())
		}
		r.line = func(l *line) connectors.Connector { return mediaLine{findingLine{l}, c} }
		r.engine = engineFunc(asks)
		r.start()
		r.post(bob, msg("hi", "hi"))
		time.Sleep(time.Second)
		synctest.Wait()
		asked := payment("Pay?")
		if asked.Type = kind; kind == claybot.QuestionSelect {
			asked.Options = []string{"tea", "coffee"}
		}
		q := r.asksFor(bob, "ask", asked)["Pay?"]
		time.Sleep(time.Minute)
		test(r, c, q)
	})
}

// speak lets bob send a recording of a text.
func (r *rig) speak(c *cloud, id, text string) {
	r.Helper()
	c.files[id] = []byte(text)
	m := withFiles(id, "", from(id, "voice.ogg", claybot.FileVoice))
	m.FirstHand, m.Spoken = false, true
	r.post(bob, m)
}

// A person's own voice answers a plain question, and approves nothing.
func TestSpokenAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		kind  claybot.QuestionType
		said  string
		other bool   // not recorded by the person
		want  string // the answer
		skip  string
		waits bool // it waits for its turn
	}{
		{"a text", claybot.QuestionText, "the day after tomorrow", false, `"the day after tomorrow"`, "answer", false},
		{"a choice", claybot.QuestionSelect, "tea", false, `"tea"`, "answer", false},
		{"an approval", claybot.QuestionConfirm, "yes", false, "", "", true},
		{"somebody else's", claybot.QuestionText, "yes", true, "", "", true},
		{"not understood", claybot.QuestionText, "noise", false, "", "", true},
	} {
		listening(t, tt.kind, func(r *rig, c *cloud, q claybot.Question) {
			if tt.other {
				c.files["v"] = []byte(tt.said)
				m := withFiles("v", "", from("v", "voice.ogg", claybot.FileVoice))
				m.FirstHand = false
				r.post(bob, m)
			} else {
				r.speak(c, "v", tt.said)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			got := r.receipt("v")
			if said := r.saidTo(q); said != tt.want || got.Skipped != tt.skip {
				r.Errorf("%s: answered %q, skipped %q; want %q, %q", tt.name, said, got.Skipped, tt.want, tt.skip)
			}
			if tt.skip == "answer" && got.Message.Text != tt.said {
				r.Errorf("%s: stored as %+v", tt.name, got.Message)
			}
			if !tt.waits {
				return
			}
			m := msg("typed", "no")
			r.post(bob, m)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if r.saidTo(q) == "" {
				r.Errorf("%s: the typed answer was not taken", tt.name)
			}
			if got := r.receipt("v"); got.Run == nil {
				r.Errorf("%s: the recording never ran: %+v", tt.name, got)
			}
		})
	}
}

// What does not fit is answered once, and the question stays open. What comes behind a
// recording waits until it was heard; a redelivery and a crash change nothing.
func TestSpokenInOrder(t *testing.T) {
	t.Parallel()
	listening(t, claybot.QuestionSelect, func(r *rig, c *cloud, q claybot.Question) {
		c.errs["v"] = []error{&connectors.RetryError{After: 5 * time.Second}}
		r.speak(c, "v", "milk")
		r.speak(c, "v", "milk")      // comes again
		r.post(bob, msg("w", "tea")) // at once, behind it
		synctest.Wait()
		if r.saidTo(q) != "" {
			r.Error("the text overtook the recording")
		}
		r.crash()
		r.start()
		time.Sleep(time.Minute)
		synctest.Wait()
		if v, w := r.receipt("v"), r.receipt("w"); v.Skipped != "unfit" || w.Skipped != "answer" || r.saidTo(q) != `"tea"` {
			r.Errorf("skipped %q and %q, answered %q", v.Skipped, w.Skipped, r.saidTo(q))
		}
		notices := slices.DeleteFunc(r.chat.seen(), func(s string) bool { return !strings.Contains(s, "is not among the answers") })
		if len(notices) != 1 {
			r.Errorf("people see %q", r.chat.seen())
		}
	})
}

// When the question is answered while the recording is transcribed, it is an ordinary
// message.
func TestSpokenTooLate(t *testing.T) {
	t.Parallel()
	listening(t, claybot.QuestionText, func(r *rig, c *cloud, q claybot.Question) {
		c.errs["v"] = []error{&connectors.RetryError{After: 5 * time.Second}}
		r.speak(c, "v", "by voice")
		synctest.Wait()
		if got := r.press(bob, q.ID, "by form"); got.Again {
			r.Fatal(got.Text)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.receipt("v"); r.saidTo(q) != `"by form"` || got.Skipped != "" || got.Run == nil {
			r.Errorf("answered %q; %+v", r.saidTo(q), got)
		}
	})
}

// A recording that comes after the one that answered is transcribed once, by the run that
// reads it.
func TestSpokenAfterTheAnswer(t *testing.T) {
	t.Parallel()
	listening(t, claybot.QuestionText, func(r *rig, c *cloud, q claybot.Question) {
		r.speak(c, "v", "by voice")
		r.speak(c, "w", "and more")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.receipt("w"); r.saidTo(q) != `"by voice"` || got.Skipped != "" || got.Run == nil {
			r.Errorf("answered %q; %+v", r.saidTo(q), got)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if want := []string{"by voice", "and more"}; !slices.Equal(c.heard, want) {
			r.Errorf("transcribed %q, want %q", c.heard, want)
		}
	})
}

// A process that ends in order while it downloads a recording leaves it to the next one,
// which takes it as the answer.
func TestSpokenWhileEnding(t *testing.T) {
	t.Parallel()
	listening(t, claybot.QuestionText, func(r *rig, c *cloud, q claybot.Question) {
		c.errs["v"] = []error{&connectors.RetryError{After: 5 * time.Second}}
		r.speak(c, "v", "by voice")
		synctest.Wait()
		r.restart()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.receipt("v"); r.saidTo(q) != `"by voice"` || got.Skipped != "answer" {
			r.Errorf("answered %q; %+v", r.saidTo(q), got)
		}
	})
}

// A second answer that does not fit gives the question up and runs, with its transcript once.
func TestSpokenTwiceUnfit(t *testing.T) {
	t.Parallel()
	listening(t, claybot.QuestionSelect, func(r *rig, c *cloud, q claybot.Question) {
		for _, id := range []string{"v", "w"} {
			r.speak(c, id, "milk please")
			time.Sleep(10 * time.Second)
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		var texts []string
		for _, rec := range r.records(bob) {
			if rec.MessageID == "w" {
				texts = append(texts, rec.Text)
			}
		}
		if len(texts) != 1 || strings.Count(texts[0], "milk please") != 1 || !strings.HasPrefix(texts[0], "[voice message") {
			r.Errorf("the agent reads %q", texts)
		}
	})
}
