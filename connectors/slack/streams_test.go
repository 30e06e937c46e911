package slack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// A grown is an answer that grows word by word, as the worker shows it.
type grown struct {
	w     *world
	o     claybot.Outgoing
	words int
	quiet time.Time
}

// grow begins an answer in a thread.
func (w *world) grow(t *testing.T, channel, user, id string) *grown {
	t.Helper()
	root := w.slack.Write(slacktest.Post{Channel: channel, User: user, Text: "<@UBOT> hello"})
	o := claybot.Outgoing{
		ID: id, Kind: claybot.OutgoingAnswer, Part: 1, Parts: 1, Progress: true,
		Route: claybot.Route{Connector: "slack", ChannelID: "T1/" + channel, UserID: user, ThreadID: root, Group: channel[0] == 'C'},
	}
	return &grown{w: w, o: o}
}

func (g *grown) text() string { return strings.TrimSpace(strings.Repeat("word ", g.words)) }

// step shows more words.
func (g *grown) step(words int) error {
	g.words += words
	if time.Now().Before(g.quiet) {
		return nil
	}
	g.o.Text = g.text()
	receipt, err := g.w.Send(g.w.t.Context(), g.o)
	var retry *connectors.RetryError
	switch {
	case errors.As(err, &retry):
		g.quiet = time.Now().Add(retry.After)
		return nil
	case err == nil && g.o.Edit == "":
		g.o.Edit = receipt
	}
	return err
}

// end shows the final text, as the deliverer does.
func (g *grown) end(text string) error {
	g.o.Text, g.o.Progress = text, false
	for range 20 {
		_, err := g.w.Send(g.w.t.Context(), g.o)
		var retry *connectors.RetryError
		if !errors.As(err, &retry) {
			return err
		}
		time.Sleep(retry.After)
	}
	return errors.New("it never ended")
}

// whole checks that a channel has these texts, and that nothing grows.
func (w *world) whole(t *testing.T, channel string, want ...string) {
	t.Helper()
	var got []string
	for _, m := range w.slack.Posted(channel) {
		if got = append(got, m.Text); m.Streaming {
			t.Errorf("%q is left streaming", m.Text)
		}
		if m.Metadata == nil && !m.Halted {
			t.Errorf("%q bears no mark", m.Text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s shows %q, want %q", channel, got, want)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// An answer in a thread is a stream: start, append, stop. In a direct chat without a thread, and
// without a person to stream to, it grows by edits.
func TestStream(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		g := w.grow(t, "C1", "U1", "o1")
		must(t, g.step(3))
		time.Sleep(time.Second)
		must(t, g.step(3))
		if m := w.slack.Posted("C1"); len(m) != 1 || !m[0].Streaming || m[0].Text != g.text() {
			t.Errorf("while it grows: %+v", m)
		}
		must(t, g.end(g.text()+" <!channel> **end** <@U2>"))
		w.whole(t, "C1", g.text()+" <\u200b!channel> **end** <\u200b@U2>")
		if n := [3]int{len(w.slack.Calls(methodStart)), len(w.slack.Calls(methodAppend)), len(w.slack.Calls(methodStop))}; n != [3]int{1, 1, 1} || len(w.slack.Calls(methodUpdate)) > 0 {
			t.Errorf("calls %v", n)
		}
	})
	for name, change := range map[string]func(o *claybot.Outgoing){
		"a direct chat": func(o *claybot.Outgoing) { o.Route.ThreadID, o.Route.ChannelID = "", "T1/DU1" },
		"everyone":      func(o *claybot.Outgoing) { o.Route.UserID = claybot.Everyone },
		"no person":     func(o *claybot.Outgoing) { o.Route.UserID = "" },
	} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			g := w.grow(t, "C1", "U1", "o1")
			change(&g.o)
			w.slack.DM("U1", "hi")
			must(t, g.step(3), g.end("the end"))
			_, channel, _ := strings.Cut(g.o.Route.ChannelID, "/")
			w.whole(t, channel, "the end")
			if n := len(w.slack.Calls(methodStart)); n != 0 {
				t.Errorf("%s: %d streams", name, n)
			}
		})
	}
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) { // in a rolling upgrade
		mixed := true
		w.cfg.Mixed = func() bool { return mixed }
		w.Connector = New(w.cfg)
		w.start(t)
		for want := range 2 {
			g := w.grow(t, fmt.Sprint("C", want), "U1", fmt.Sprint("o", want))
			must(t, g.step(3), g.end("word word word."))
			if n := len(w.slack.Calls(methodStart)); n != want {
				t.Errorf("members of several versions: %v; %d streams", mixed, n)
			}
			mixed = false
		}
	})
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) { // a user of another workspace
		w.start(t)
		g := w.grow(t, "C1", "U9", "o1")
		g.o.Route.UserID = "T9/U9"
		must(t, g.step(3), g.end("word word word."))
		if f := w.slack.Calls(methodStart)[0].Form; f.Get("recipient_team_id") != "T9" || f.Get("recipient_user_id") != "U9" {
			t.Errorf("started for %v", f)
		}
	})
}

// Whatever happens to a stream, its message shows the final text once, and none is left streaming.
func TestStreamFaults(t *testing.T) {
	final := "word word word word, and the end"
	for name, fault := range map[string]func(t *testing.T, w *world, g *grown){
		"another text":   func(t *testing.T, w *world, g *grown) { g.o.Text = "x" },
		"too many stops": func(t *testing.T, w *world, g *grown) { w.slack.Fail(methodStop, slacktest.Fault{RetryAfter: 30e9}) },
		"lost stop":      func(t *testing.T, w *world, g *grown) { w.slack.Fail(methodStop, slacktest.Fault{Lost: true}) },
		"failed stop": func(t *testing.T, w *world, g *grown) {
			w.slack.Fail(methodStop, slacktest.Fault{Error: "internal_error"})
		},
		"refused stop": func(t *testing.T, w *world, g *grown) {
			w.slack.Fail(methodStop, slacktest.Fault{Error: "invalid_chunks"})
		},
		"lost append": func(t *testing.T, w *world, g *grown) {
			w.slack.Fail(methodAppend, slacktest.Fault{Lost: true})
			_ = g.step(1)
			g.words--
		},
		"refused append": func(t *testing.T, w *world, g *grown) {
			w.slack.Fail(methodAppend, slacktest.Fault{Error: "no_text"})
			_ = g.step(1)
			g.words--
		},
		"its life": func(t *testing.T, w *world, g *grown) { time.Sleep(6 * time.Minute) },
		"idle":     func(t *testing.T, w *world, g *grown) { time.Sleep(2 * time.Minute); w.whole(t, "C1", g.text()) },
		"a person": func(t *testing.T, w *world, g *grown) {
			w.slack.Halt("C1", g.o.Edit)
			must(t, g.step(1))
			g.words--
			if got := w.slack.Posted("C1")[0].Text; got != g.text() {
				t.Errorf("after a person stopped it: %q", got)
			}
			must(t, g.step(1)) // says it once
			g.words--
			time.Sleep(time.Second)
			if got := w.inbox.news(); !slices.Equal(got, []string{"stop [] by U1 of=false group=true outsider=false"}) {
				t.Errorf("the system is told %q", got)
			}
		},
		"kill": func(t *testing.T, w *world, g *grown) { w.restart(t) },
		"kill and progress": func(t *testing.T, w *world, g *grown) {
			w.restart(t)
			must(t, g.step(1))
			g.words--
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
				w.start(t)
				g := w.grow(t, "C1", "U1", "o1")
				must(t, g.step(3))
				time.Sleep(time.Second)
				fault(t, w, g)
				time.Sleep(time.Second)
				text := final
				if name == "another text" {
					text = "something else"
				}
				for range 3 { // as often as the deliverer tries
					if g.end(text) == nil {
						break
					}
					time.Sleep(10 * time.Second)
				}
				w.whole(t, "C1", text)
			})
		})
	}
}

// Where Slack refuses a stream, the answer grows by edits at once, and no stream is tried for a
// while.
func TestStreamRefused(t *testing.T) {
	for _, fault := range []slacktest.Fault{
		{Error: "missing_scope", Needed: "chat:write"}, {Error: "feature_not_enabled"}, {Error: "unknown_method"}, {RetryAfter: time.Minute}, {Error: "invalid_thread_ts"},
	} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			w.slack.Fail(methodStart, fault)
			var texts []string
			for i := range 3 {
				g := w.grow(t, "C1", "U1", fmt.Sprint("o", i))
				must(t, g.step(3), g.end(fmt.Sprint("word word word ", i)))
				texts = append(texts, g.o.Text)
				time.Sleep(5 * time.Second)
			}
			w.whole(t, "C1", texts...)
			want := 1
			if fault.Error == "invalid_thread_ts" { // that thread alone
				want = 3
			}
			if n := len(w.slack.Calls(methodStart)); n != want {
				t.Errorf("%+v: %d starts, want %d", fault, n, want)
			}
			time.Sleep(streamsAgain)
			g := w.grow(t, "C1", "U1", "later")
			must(t, g.step(3), g.end("word word word"))
			if n := len(w.slack.Calls(methodStart)); n != want+1 {
				t.Errorf("%+v: %d starts an hour later", fault, n)
			}
		})
	}
}

// A start without an answer is not looked up by its text: several people may have streams in one
// thread that begin alike, and one process does not know those of the others. The answer is a post of
// its own, and each stream shows its own text in the end.
func TestStreamLostStart(t *testing.T) {
	for name, words := range map[string]int{"another text": 1, "the same words": 3} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			b := w.grow(t, "C1", "U2", "o2")
			must(t, b.step(words))
			w.restart(t) // as another member, which does not know this stream
			a := *b
			a.o.ID, a.o.Edit, a.o.Route.UserID, a.o.Tried, a.words = "o1", "", "U1", claybot.Now(), 0
			w.slack.Fail(methodStart, slacktest.Fault{Status: 502})
			var ambiguous *connectors.AmbiguousError
			if err := a.step(3); !errors.As(err, &ambiguous) {
				t.Fatalf("%s: a lost start: %v", name, err)
			}
			a.o.Progress, a.o.Text = false, "word word word of A"
			if receipt, found, err := w.Find(t.Context(), a.o); found || err != nil {
				t.Errorf("%s: found %q (that of B is %s), %v", name, receipt, b.o.Edit, err)
			}
			must(t, a.end("word word word of A"), b.end("word word word of B"))
			w.whole(t, "C1", "word word word of B", "word word word of A")
			if _, found, err := w.Find(t.Context(), a.o); !found || err != nil {
				t.Errorf("%s: the post of A is not found: %v", name, err)
			}
		})
	}
}

// A stream that Slack does not stop is forgotten, so that others can begin; its message shows the
// final text as soon as Slack takes it.
func TestStreamWithoutStop(t *testing.T) {
	for _, fault := range []slacktest.Fault{{Error: "channel_not_found"}, {Error: "invalid_auth"}, {Error: "message_not_owned_by_app"}, {Status: 500}} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			for i := range streamsPerMinute {
				must(t, w.grow(t, fmt.Sprint("C", i), "U1", fmt.Sprint("o", i)).step(3))
			}
			for range 2_000 {
				w.slack.Fail(methodStop, fault)
			}
			time.Sleep(streamLasts + 2*streamIdle)
			tried := len(w.slack.Calls(methodStop))
			time.Sleep(10 * time.Minute)
			if n := len(w.slack.Calls(methodStop)); n > tried {
				t.Errorf("%+v: %d calls more", fault, n-tried)
			}
			if n := len(w.streams.idle()); n > 0 {
				t.Errorf("%+v: %d streams are open", fault, n)
			}
			must(t, w.grow(t, "CLAST", "U1", "last").step(3))
			if m := w.slack.Posted("CLAST"); len(m) != 1 || !m[0].Streaming {
				t.Errorf("%+v: no stream begins: %+v", fault, m)
			}
		})
	}
}

// A text that does not continue its stream, which Slack has ended meanwhile, is shown by the same
// attempt.
func TestStreamEnded(t *testing.T) {
	for name, show := range map[string]func(w *world, g *grown) error{
		"another draft": func(_ *world, g *grown) error {
			g.o.Text = "other"
			_, err := g.w.Send(g.w.t.Context(), g.o)
			return err
		},
		"another text": func(_ *world, g *grown) error {
			g.o.Text, g.o.Progress = "other", false
			_, err := g.w.Send(g.w.t.Context(), g.o)
			return err
		},
		"a refused append": func(w *world, g *grown) error {
			w.slack.Fail(methodAppend, slacktest.Fault{Error: "no_text"})
			g.o.Text = "word word word other"
			_, err := g.w.Send(g.w.t.Context(), g.o)
			return err
		},
	} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			g := w.grow(t, "C1", "U1", "o1")
			must(t, g.step(3))
			time.Sleep(time.Second)
			w.slack.Fail(methodStop, slacktest.Fault{Error: "message_not_in_streaming_state"})
			if err := show(w, g); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			w.whole(t, "C1", g.o.Text)
		})
	}
}

// A link never goes into a stream, which has no unfurl_links: Slack might crawl it.
func TestStreamWithoutLinks(t *testing.T) {
	for text, linked := range map[string]bool{
		"see https://evil.example/secret": true, "see HTTP://evil": true, "see www.evil.example": true, "[it](secret)": true,
		"evil.example/secret": true, "evil.example:80/secret": true, "evil.example?secret": true, "secret.evil.example": true,
		"config.yaml and main.go:12, and/or 3.14, e.g. v1.2.3 ... then": false,
	} {
		inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
			w.start(t)
			g, at := w.grow(t, "C1", "U1", "o1"), w.grow(t, "C2", "U1", "o2")
			late := w.grow(t, "C3", "U1", "o3")
			at.o.Text = text
			receipt, err := w.Send(t.Context(), at.o) // in its first text
			at.o.Edit = receipt
			must(t, err, g.step(3), late.step(3))
			time.Sleep(time.Second)
			g.o.Text = g.text() + " " + text // in a draft
			_, err = w.Send(t.Context(), g.o)
			must(t, err, g.end(g.text()+" "+text+" end"), at.end(text+" end"), late.end(late.text()+" "+text))
			for _, channel := range []string{"C1", "C2", "C3"} {
				if m := w.slack.Posted(channel); len(m) != 1 || m[0].Streaming || !strings.Contains(m[0].Text, strings.Trim(text, "[")[:2]) {
					t.Errorf("%s shows %+v", channel, m)
				}
			}
			for _, method := range []string{methodStart, methodAppend, methodStop} {
				for _, call := range w.slack.Calls(method) {
					if linked && strings.Contains(strings.ToLower(call.Form.Get("markdown_text")), text[len(text)-6:]) {
						t.Errorf("%s: %q", method, call.Form.Get("markdown_text"))
					}
				}
			}
			if !linked && len(w.slack.Calls(methodUpdate)) > 0 {
				t.Errorf("%q is no link", text)
			}
		})
	}
}

// Twenty answers at once, within the documented limits: each is complete once, none is left
// streaming, and Slack refuses no call.
func TestStreamsOfTwenty(t *testing.T) {
	inWorld(t, slacktest.Config{}, func(t *testing.T, w *world) {
		w.start(t)
		for round := range 2 {
			var all []*grown
			for i := range 20 {
				all = append(all, w.grow(t, fmt.Sprint("C", round, i), fmt.Sprint("U", i), fmt.Sprint("o", round, "/", i)))
			}
			for range 90 {
				for _, g := range all {
					must(t, g.step(2))
				}
				time.Sleep(time.Second)
			}
			began := time.Now()
			for _, g := range all {
				must(t, g.end(g.text()+" end"))
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("the final texts took %v", took)
			}
			for i, g := range all {
				w.whole(t, fmt.Sprint("C", round, i), g.text()+" end")
			}
		}
		synctest.Wait()
		refused := 0
		for _, c := range w.slack.Journal() {
			if c.Status == 429 {
				refused++
			}
		}
		if refused > 0 || len(w.slack.Calls(methodStart)) < 20 {
			t.Errorf("%d calls were refused, %d streams", refused, len(w.slack.Calls(methodStart)))
		}
	})
}
