package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/texts"
)

// What a form shows before anything was written.
func TestFormBegins(t *testing.T) {
	for _, c := range []struct {
		q                 claybot.Question
		initial           any
		placeholder, hint string
	}{
		{claybot.Question{Type: claybot.QuestionText, Default: "hello", Placeholder: "say it"}, "hello", "say it", ""},
		{claybot.Question{Type: claybot.QuestionText, Example: "AB12"}, nil, "AB12", ""},
		{claybot.Question{Type: claybot.QuestionText, Default: "two\nlines"}, nil, "", ""},
		{claybot.Question{Type: claybot.QuestionTextarea, Default: "two\nlines"}, "two\nlines", "", ""},
		{claybot.Question{Type: claybot.QuestionNumber, Default: "2,50", Min: bound(-1e300)}, "2.5", "", ""},
		{claybot.Question{Type: claybot.QuestionDate, Default: "2026-03-31"}, "2026-03-31", "", ""},
		{claybot.Question{Type: claybot.QuestionTime, Default: "7:05"}, "07:05", "", ""},
		{claybot.Question{Type: claybot.QuestionDatetime, Default: "2026-03-31T15:04+02:00"}, time.Date(2026, 3, 31, 13, 4, 0, 0, time.UTC).Unix(), "", "time zone"},
		{claybot.Question{Type: claybot.QuestionDatetime, Default: "2026-03-31 15:04"}, nil, "", "time zone"}, // whose?
		{claybot.Question{Type: claybot.QuestionDatetime, Default: "1980-03-31T15:04Z"}, nil, "", "time zone"},
		{claybot.Question{Type: claybot.QuestionEmail, Default: "Ann@example.org"}, "ann@example.org", "", ""},
		{claybot.Question{Type: claybot.QuestionEmailList, Default: "ann@example.org, bob@example.org"}, "ann@example.org, bob@example.org", "", "commas"},
		{claybot.Question{Type: claybot.QuestionMultiselect, Options: []string{"a", "b", "c"}, Default: "c, a"}, []string{"a", "c"}, "", ""},
		{claybot.Question{Type: claybot.QuestionMultiselect, Options: manyOptions(12, 5), Max: bound(1), Default: "03 xx", Placeholder: "any"}, []string{"03 xx"}, "any", ""},
	} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			channel, _ := w.slack.DM("U1", "hi")
			c.q.ID, c.q.Required = "01ABC", true
			v := w.modal(t, "U1", channel, w.ask(t, channel, "", c.q), "Answer…")
			in := v.Inputs[0]
			if fmt.Sprint(in.Initial) != fmt.Sprint(c.initial) || in.Placeholder != c.placeholder || !strings.Contains(in.Hint, c.hint) || in.Optional {
				t.Errorf("%s: the input is %+v, want %v, %q, %q", c.q.Type, in, c.initial, c.placeholder, c.hint)
			}
		})
	}
}

// A button press while no connector listens is taken when one does; a form cannot open so
// late, and the person is told what to do.
func TestPressWhileDown(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		channel, _ := w.slack.DM("U1", "hi")
		yes := w.ask(t, channel, "", claybot.Question{ID: "q1", Type: claybot.QuestionBoolean})
		form := w.ask(t, channel, "", claybot.Question{ID: "q2", Type: claybot.QuestionDate})
		for ts, button := range map[string]string{yes: "Yes", form: "Answer…"} {
			if _, err := w.slack.Click("U1", channel, ts, button); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		w.start(t)
		w.settled(t)
		synctest.Wait()
		if a, ok := w.inbox.answer("q1"); !ok || string(a.Value) != "true" {
			t.Errorf("the answer is %+v", a)
		}
		w.wantWhisper(t, "U1", texts.SlackNoForm)
		if v, ok := w.slack.Modal("U1"); ok {
			t.Errorf("opened %+v", v)
		}
	})
}

// An answer that does not fit is refused at the input, and the form stays open.
func TestUnfitAnswer(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		unfit(t, w)
	})
}

func unfit(t *testing.T, w *world) {
	t.Helper()
	channel, _ := w.slack.DM("U1", "hi")
	ts := w.ask(t, channel, "", claybot.Question{ID: "q1", Type: claybot.QuestionText, Format: "[A-Z]+", Example: "ABC", Required: true})
	v := w.modal(t, "U1", channel, ts, "Answer…")
	for range 2 {
		got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": "abc"})
		if err != nil || !strings.Contains(got.Errors[v.Inputs[0].Block], "such as ABC") {
			t.Fatalf("sent: %+v, %v", got, err)
		}
	}
	if got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": "XYZ"}); err != nil || !got.Closed {
		t.Errorf("sent: %+v, %v", got, err)
	}
	if a, _ := w.inbox.answer("q1"); string(a.Value) != `"XYZ"` {
		t.Errorf("the answer is %+v", a)
	}
	// A button whose answer does not fit any more is told in private.
	ts = w.ask(t, channel, "", claybot.Question{ID: "q2", Type: claybot.QuestionSelect, Options: []string{"a", "b"}})
	w.inbox.asked(claybot.Question{ID: "q2", Type: claybot.QuestionSelect, Options: []string{"c"}})
	w.click(t, "U1", channel, ts, "a")
	if h := w.slack.Whispers("U1"); len(h) != 1 || !strings.Contains(h[0].Text, "choose one of: c") {
		t.Errorf("told %+v", h)
	}
}

// What is not stored is not acknowledged, and the user may press the button again.
func TestAnswerNotStored(t *testing.T) {
	inWorld(t, slacktest.Config{Redeliver: time.Minute}, func(t *testing.T, w *world) {
		w.start(t)
		channel, _ := w.slack.DM("U1", "hi")
		ts := w.ask(t, channel, "", claybot.Question{ID: "q1", Type: claybot.QuestionBoolean})
		form := w.ask(t, channel, "", claybot.Question{ID: "q2", Type: claybot.QuestionTime, Required: true})
		v := w.modal(t, "U1", channel, form, "Answer…")
		full := errors.New("no space left")
		w.inbox.decide(func(context.Context) error { return full })
		if _, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": "10:00"}); !errors.Is(err, slacktest.ErrNoAnswer) {
			t.Errorf("sent: %v", err)
		}
		// A store that hangs gets no more time than the person has.
		w.inbox.decide(func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		began := time.Now()
		if _, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": "10:00"}); !errors.Is(err, slacktest.ErrNoAnswer) || time.Since(began) != 3*time.Second {
			t.Errorf("sent: %v after %v", err, time.Since(began))
		}
		envelope, err := w.slack.Click("U1", channel, ts, "Yes")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if !slices.Contains(w.slack.Unacked(), envelope) {
			t.Error("a button press was acknowledged that was not stored")
		}
		w.inbox.decide(nil)
		if got, err := w.slack.Submit(t.Context(), v.ID, map[string]any{"": "10:00"}); err != nil || !got.Closed {
			t.Errorf("sent again: %+v, %v", got, err)
		}
		w.settled(t) // Slack repeats
		synctest.Wait()
		for id, want := range map[string]string{"q1": "true", "q2": `"10:00"`} {
			if a, _ := w.inbox.answer(id); string(a.Value) != want {
				t.Errorf("%s: %+v, want %s", id, a, want)
			}
		}
		w.wantWhisper(t, "U1") // the forms are gone that were sent in vain
	})
}

// A form that does not open leads to a word to the user who pressed; one that is open
// already does not open twice.
func TestFormDoesNotOpen(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault slacktest.Fault
		told  []string
	}{
		{"expired", slacktest.Fault{Error: "expired_trigger_id"}, []string{texts.SlackNoForm}},
		{"refused", slacktest.Fault{Error: "invalid_arguments"}, []string{texts.SlackNoForm}},
		{"rate", slacktest.Fault{RetryAfter: time.Second}, []string{texts.SlackNoForm}},
		{"account", slacktest.Fault{Error: "invalid_auth"}, []string{texts.SlackNoForm}},
		{"slow", slacktest.Fault{Hang: true}, []string{texts.SlackNoForm}},
		{"open already", slacktest.Fault{Error: "exchanged_trigger_id"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.start(t)
				channel, _ := w.slack.DM("U1", "hi")
				ts := w.ask(t, channel, "", claybot.Question{ID: "q1", Type: claybot.QuestionDate})
				w.slack.Fail(methodView, c.fault)
				began := time.Now()
				if _, err := w.slack.Click("U1", channel, ts, "Answer…"); err != nil {
					t.Fatal(err)
				}
				w.settled(t)
				if d := time.Since(began); d > time.Second {
					t.Errorf("acknowledged after %v", d)
				}
				time.Sleep(openTime + time.Second)
				w.wantWhisper(t, "U1", c.told...)
				if len(w.inbox.pressed()) != 0 {
					t.Error("that is not an answer")
				}
			})
		})
	}
}
