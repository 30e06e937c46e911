package slack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/slack/slacktest"
)

// forgetful is a Slack that loses what could not be delivered for six minutes,
// with the subscriptions of the manifest in docs/slack.md.
func forgetful() slacktest.Config {
	return slacktest.Config{Forget: 6 * time.Minute, Redeliver: time.Minute, Ping: 20 * time.Second}
}

// A people is an inbox that knows its chats, as a System does.
type people struct {
	*inbox
	missed []connectors.Missed
	untold int // how many calls of Missed fail first
	more   int // further chats that Recent does not list
}

func (p *people) Recent(_ context.Context, _, prefix string, since time.Time) (chats []connectors.Chat, more int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, in := range slices.Backward(p.got) {
		if in.message.At.Time().Before(since) || !strings.HasPrefix(in.to.ChannelID, prefix) {
			continue
		}
		i := slices.IndexFunc(chats, func(c connectors.Chat) bool { return c.ChannelID == in.to.ChannelID })
		if i < 0 {
			i, chats = len(chats), append(chats, connectors.Chat{ChannelID: in.to.ChannelID})
		}
		if th := in.message.Context.ThreadID; th != "" && !slices.Contains(chats[i].Threads, th) {
			chats[i].Threads = append(chats[i].Threads, th)
		}
	}
	return chats, p.more, nil
}

// Missed tells each chat once for each gap.
func (p *people) Missed(_ context.Context, m connectors.Missed) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.untold > 0 {
		p.untold--
		return 0, errors.New("the store fails")
	}
	same := func(x connectors.Missed) bool { return x.From.Equal(m.From) && slices.Equal(x.Channels, m.Channels) }
	if !slices.ContainsFunc(p.missed, same) {
		p.missed = append(p.missed, m)
	}
	return 0, nil
}

// forget leaves of all messages but those of these texts no trace.
func (p *people) forget(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = slices.DeleteFunc(p.got, func(in incoming) bool { return !slices.Contains(texts, in.message.Text) })
	clear(p.known)
	for _, in := range p.got {
		p.known[in.message.ID] = true
	}
}

// told are the channels that were told of a gap.
func (p *people) told() (channels []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.missed {
		channels = append(channels, m.Channels...)
	}
	slices.Sort(channels)
	return channels
}

// gaps are those that channels were told of.
func (p *people) gaps() []connectors.Missed {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.missed)
}

// copied are the marks as they are now.
func (m *marks) copied() *marks {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &marks{kept: maps.Clone(m.kept)}
}

// set changes the mark whose key ends in what.
func (m *marks) set(what, value string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.kept {
		if strings.HasSuffix(key, "/"+what) {
			m.kept[key] = value
		}
	}
}

// failWith makes the store fail, or work again.
func (m *marks) failWith(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

// A gapWorld is a world whose people can be told of gaps.
type gapWorld struct {
	*world
	people *people
	t      *testing.T
}

func inGapWorld(t *testing.T, sc slacktest.Config, test func(w *gapWorld)) {
	t.Helper()
	inWorld(t, sc, func(t *testing.T, w *world) {
		w.cfg.Marks = &marks{kept: make(map[string]string)}
		w.Connector = New(w.cfg)
		g := &gapWorld{world: w, people: &people{inbox: w.inbox}, t: t}
		w.handler = g.people
		test(g)
	})
}

// away ends the connector, lets things happen, and starts another one after d.
func (w *gapWorld) away(d time.Duration, meanwhile func()) {
	w.t.Helper()
	w.stop()
	<-w.ended
	w.stop = func() {}
	time.Sleep(d / 2)
	meanwhile()
	time.Sleep(d - d/2)
	w.Connector = New(w.cfg)
	w.start(w.t)
}

func (w *gapWorld) wants(texts ...string) {
	w.t.Helper()
	if got := w.inbox.texts(); !slices.Equal(got, texts) {
		w.t.Errorf("posted %q, want %q", got, texts)
	}
}

func (w *gapWorld) wantsTold(channels ...string) {
	w.t.Helper()
	if got := w.people.told(); !slices.Equal(got, channels) {
		w.t.Errorf("told %q, want %q", got, channels)
	}
}

func (w *gapWorld) reads() int {
	return len(w.slack.Calls(methodHistory)) + len(w.slack.Calls(methodReplies))
}

// What was written while no socket was open for long is posted afterwards: in
// order, once, with the ids of live messages, and nothing that the app has not
// subscribed to. It does not matter whether claybot or Slack was down.
func TestBackfill(t *testing.T) {
	for name, gap := range map[string]func(w *gapWorld, meanwhile func()){
		"claybot was down": func(w *gapWorld, meanwhile func()) { w.away(time.Hour, meanwhile) },
		"slack was down": func(w *gapWorld, meanwhile func()) {
			w.slack.Down(true)
			time.Sleep(30 * time.Minute)
			meanwhile()
			time.Sleep(30 * time.Minute)
			w.slack.Down(false)
		},
		"the clock was ahead": func(w *gapWorld, meanwhile func()) {
			w.away(time.Hour, func() {
				w.cfg.Marks.(*marks).set("last_good", time.Now().Add(1000*time.Hour).UTC().Format(time.RFC3339))
				meanwhile()
			})
		},
		"the process was killed": func(w *gapWorld, meanwhile func()) {
			kept := w.cfg.Marks.(*marks).copied()
			w.away(time.Hour, func() { // its last words were not kept
				w.cfg.Marks = kept
				meanwhile()
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inGapWorld(t, forgetful(), func(w *gapWorld) {
				w.start(w.t)
				w.slack.DM("UANN", "one")
				old := w.slack.Mention("C1", "UBOB", "begin", false)
				time.Sleep(2 * time.Hour)
				w.settled(w.t)
				gap(w, func() {
					w.slack.DM("UANN", "two")
					w.slack.Say("", "C1", "UBOB", "said to others")
					root := w.slack.Say("", "C1", "UBOB", "a thread of others")
					w.slack.Mention("C1", "UBOB", "in the channel", false)
					w.slack.Write(slacktest.Post{Channel: "C1", User: "UBOB", Text: "<@UBOT> in the new thread", Thread: root, Mention: true})
					w.slack.Write(slacktest.Post{Channel: "C1", User: "UBOB", Text: "<@UBOT> in the old thread", Thread: old, Mention: true})
					w.slack.Write(slacktest.Post{Channel: "C1", User: "UOTHER", BotID: "BOTHER", Text: "<@UBOT> by a bot", Mention: true})
					w.slack.Write(slacktest.Post{Channel: "C1", User: "UBOB", Text: "<@UBOT> joined", Subtype: "channel_join"})
					w.slack.DM("UANN", "three")
				})
				time.Sleep(2 * time.Minute)
				w.settled(w.t)
				got := w.inbox.texts()
				slices.Sort(got)
				want := []string{"begin", "by a bot", "in the channel", "in the new thread", "in the old thread", "one", "three", "two"}
				if !slices.Equal(got, want) {
					w.t.Errorf("posted %q, want %q", got, want)
				}
				w.wantsTold()
				if at := slices.Index(w.inbox.texts(), "two"); at < 0 || at > slices.Index(w.inbox.texts(), "three") {
					w.t.Errorf("out of order: %q", w.inbox.texts())
				}
				for _, in := range w.inbox.all() {
					if in.message.Text == "in the old thread" && (in.message.Context.ThreadID != old || !in.message.Context.Group || in.to != claybot.User("slack", "T1/C1", "UBOB")) {
						w.t.Errorf("%+v", in)
					}
				}
				reads := w.reads()
				time.Sleep(time.Hour)
				w.away(4*time.Minute, func() {})
				time.Sleep(time.Hour)
				if w.reads() != reads {
					w.t.Errorf("%d more reads without a gap", w.reads()-reads)
				}
			})
		})
	}
}

// A store that went back in time does not know what has been answered since: nothing
// that is older than the restore is posted again, also not because of a later gap, which is
// read from some minutes before it. What was written afterwards is posted.
func TestBackfillAfterRestore(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.start(w.t)
		w.slack.DM("UANN", "one")
		time.Sleep(2 * time.Hour)
		w.settled(w.t)
		back := w.cfg.Marks.(*marks).copied()
		w.slack.DM("UANN", "two")
		time.Sleep(2 * time.Hour)
		w.slack.DM("UANN", "three")
		w.settled(w.t)
		w.away(time.Minute, func() {
			w.cfg.Marks = back
			back.kept[connectors.MarkRestored] = time.Now().UTC().Format(time.RFC3339)
			w.people.forget("one")
		})
		w.away(6*time.Minute, func() { w.slack.DM("UANN", "four") })
		time.Sleep(2 * time.Minute)
		w.settled(w.t)
		w.wants("one", "four")
		w.wantsTold()
	})
}

// All pages are read, at the pace that Slack sets.
func TestBackfillPages(t *testing.T) {
	sc := forgetful()
	sc.HistoryItems, sc.PerMinute = 2, map[string]int{"conversations.history": 6, "conversations.replies": 6}
	inGapWorld(t, sc, func(w *gapWorld) {
		w.start(w.t)
		w.slack.DM("UANN", "0")
		time.Sleep(time.Hour)
		want := []string{"0"}
		w.away(time.Hour, func() {
			for i := range 9 {
				w.slack.DM("UANN", fmt.Sprint(i+1))
				want = append(want, fmt.Sprint(i+1))
			}
		})
		time.Sleep(5 * time.Minute)
		w.wants(want...)
		w.wantsTold()
	})
}

// Live messages of a conversation wait for the older ones; those of others do
// not.
func TestBackfillComesFirst(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.start(w.t)
		w.slack.DM("UANN", "one")
		w.settled(w.t)
		time.Sleep(time.Hour)
		w.slack.Fail(methodHistory, slacktest.Fault{RetryAfter: 20 * time.Second})
		w.away(time.Hour, func() { w.slack.DM("UANN", "two") })
		w.slack.DM("UANN", "three")
		w.slack.DM("UNEW", "new here")
		time.Sleep(time.Second)
		w.wants("one", "new here")
		time.Sleep(time.Minute)
		w.wants("one", "new here", "two", "three")
		w.settled(w.t)
		w.wantsTold()
	})
}

// Where live messages would wait for too long they go first. Then the older
// ones are not posted, and the conversation is told; a restart changes nothing.
func TestBackfillGivesWay(t *testing.T) {
	for _, live := range []string{"message", "command"} {
		t.Run(live, func(t *testing.T) {
			inGapWorld(t, forgetful(), func(w *gapWorld) {
				w.start(w.t)
				w.slack.DM("UANN", "one")
				time.Sleep(time.Hour)
				w.slack.Fail(methodHistory, slacktest.Fault{RetryAfter: 10 * time.Minute})
				w.people.untold = 1
				w.away(time.Hour, func() { w.slack.DM("UANN", "two") })
				last, wait := "three", patience
				if live == "message" {
					w.slack.DM("UANN", last)
				} else {
					w.slack.Slash("DUANN", "UANN", "/claybot", "status")
					last, wait = "", slashPatience
				}
				time.Sleep(wait - time.Millisecond)
				w.wants("one")
				time.Sleep(2 * time.Millisecond)
				w.wants("one", last)
				w.wantsTold()
				w.away(time.Minute, func() {})
				time.Sleep(time.Hour)
				w.wants("one", last)
				w.wantsTold("T1/DUANN")
				w.settled(w.t)
			})
		})
	}
}

// Where history cannot be read, the chats concerned are told, once, and the
// operator sees why.
func TestBackfillIsNotPossible(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(w *gapWorld)
		down    time.Duration
		posted  []string
		told    []string
		health  string
	}{
		{"scope", func(w *gapWorld) { w.slack.Lack("channels:history", true) }, time.Hour, []string{"two", "three"}, []string{"T1/C1"}, "channels:history"},
		{"all scopes", func(w *gapWorld) {
			w.slack.Lack("channels:history", true)
			w.slack.Lack("im:history", true)
		}, time.Hour, nil, []string{"T1/C1", "T1/DUANN"}, "missing_scope"},
		{"off", func(w *gapWorld) { w.cfg.NoBackfill = true }, time.Hour, nil, []string{"T1/C1", "T1/DUANN"}, "slack.backfill is off"},
		{"server", func(w *gapWorld) {
			for range 2 * backfillTries {
				w.slack.Fail(methodHistory, slacktest.Fault{Error: "internal_error"})
			}
		}, time.Hour, nil, []string{"T1/C1", "T1/DUANN"}, "internal_error"},
		{"too old", func(*gapWorld) {}, 50 * time.Hour, nil, []string{"T1/C1", "T1/DUANN"}, "older"},
		{"not there any more", func(w *gapWorld) { w.slack.Leave("C1", true) }, time.Hour, []string{"two", "three"}, nil, ""},
		{"no answer for a minute", func(w *gapWorld) {
			for range outageTries - 2 {
				w.slack.Fail(methodHistory, slacktest.Fault{Status: 502})
			}
		}, time.Hour, []string{"two", "three", "for you"}, nil, ""},
		{"no answer for minutes", func(w *gapWorld) {
			w.slack.Fail(methodHistory, repeated(1000, slacktest.Fault{Status: 502}, "C1")...)
		}, time.Hour, []string{"two", "three"}, []string{"T1/C1"}, "502"},
		{"a broken answer", func(w *gapWorld) {
			w.slack.Fail(methodHistory, slacktest.Fault{Cut: true}, slacktest.Fault{Status: 502})
		}, time.Hour, []string{"two", "three", "for you"}, nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inGapWorld(t, forgetful(), func(w *gapWorld) {
				w.start(w.t)
				w.slack.DM("UANN", "one")
				w.slack.Mention("C1", "UBOB", "begin", false)
				time.Sleep(time.Hour)
				down := time.Now()
				tt.prepare(w)
				w.away(tt.down, func() {
					w.slack.DM("UANN", "two")
					w.slack.DM("UANN", "three")
					w.slack.Mention("C1", "UBOB", "for you", false)
				})
				time.Sleep(5 * time.Minute)
				got := w.inbox.texts()[2:]
				slices.Sort(got)
				want := slices.Sorted(slices.Values(tt.posted))
				if !slices.Equal(got, want) {
					w.t.Errorf("posted %q, want %q", got, want)
				}
				w.wantsTold(tt.told...)
				for _, m := range w.people.gaps() {
					if m.From.Sub(down).Abs() > time.Minute || m.To.Sub(m.From)-tt.down > time.Minute || m.Connector != "slack" || !m.Flat {
						w.t.Errorf("%+v", m)
					}
				}
				if h := w.Health(); h.State != connectors.StateLive || !strings.Contains(h.Err, tt.health) || (h.Err == "") != (tt.health == "") {
					w.t.Errorf("health %+v", h)
				}
				w.away(time.Minute, func() {})
				time.Sleep(24 * time.Hour)
				synctest.Wait()
				w.wantsTold(tt.told...)
				if h := w.Health(); strings.Contains(h.Err, "no connection") {
					w.t.Errorf("a day later: %+v", h)
				}
			})
		})
	}
}

// A process that dies in the middle leaves the rest of the gap to the next one,
// and a store that fails delays it.
func TestBackfillGoesOn(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.start(w.t)
		w.slack.DM("UANN", "one")
		w.slack.DM("UBOB", "hello")
		time.Sleep(time.Hour)
		broken := true
		w.inbox.before = func(_ context.Context, m claybot.AgentMessage) error {
			if broken && m.Text == "three" {
				return errors.New("disk full")
			}
			return nil
		}
		w.slack.Lack("im:history", false)
		w.away(time.Hour, func() {
			w.slack.DM("UANN", "two")
			w.slack.DM("UANN", "three")
			w.slack.DM("UBOB", "are you there?")
		})
		time.Sleep(time.Minute)
		w.away(2*time.Minute, func() { broken = false })
		time.Sleep(time.Minute)
		got := w.inbox.texts()
		slices.Sort(got)
		if want := []string{"are you there?", "hello", "one", "three", "two"}; !slices.Equal(got, want) {
			w.t.Errorf("posted %q, want %q", got, want)
		}
		w.wantsTold()
	})
}

// A connector that cannot read its marks reads them later; live messages do not wait for
// that for ever.
func TestBackfillWithoutMarks(t *testing.T) {
	inGapWorld(t, forgetful(), func(w *gapWorld) {
		w.start(w.t)
		w.slack.DM("UANN", "one")
		time.Sleep(time.Hour)
		kept := w.cfg.Marks.(*marks)
		w.away(time.Hour, func() {
			w.slack.DM("UANN", "two")
			kept.failWith(errors.New("busy"))
		})
		w.slack.DM("UBOB", "hello")
		time.Sleep(time.Second)
		w.wants("one", "hello")
		kept.failWith(nil)
		time.Sleep(2 * backfillAgain)
		w.wants("one", "hello", "two")
	})
}
