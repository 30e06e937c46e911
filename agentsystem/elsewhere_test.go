package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

// A pair is two systems over one store: desk takes messages in and works on none,
// mill does the work. What commits comes to both as a hint, unless that is lost.
type pair struct {
	*testing.T
	db         *sqlite.DB
	versions   *versions
	desk, mill *agentsystem.AgentSystem
	page       *page // of the desk
	access     people.Access
	loss       float64
}

// idle is an inbox that has no work for its node.
type idle struct{ agentsystem.Inbox }

func (i idle) Post(ctx context.Context, p storage.Posting) (storage.Posted, error) {
	p.Start = nil
	return i.Inbox.Post(ctx, p)
}

func (idle) Acquire(context.Context, string, time.Duration, int, int) ([]storage.Acquired, time.Time, error) {
	return nil, time.Time{}, nil
}

// versions count what a store that several nodes share would count.
type versions struct {
	agentsystem.Index
	agentsystem.Access
	mu    sync.Mutex
	now   storage.Version
	asked int
}

func (v *versions) Versions(context.Context) (storage.Version, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	return v.now, nil
}

func (v *versions) count(err error, n func(*storage.Version) *int64) error {
	if err == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		*n(&v.now)++
	}
	return err
}

func settings(v *storage.Version) *int64 { return &v.Settings }
func access(v *storage.Version) *int64   { return &v.Access }

func (v *versions) SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error {
	return v.count(v.Index.SaveAgentSettings(ctx, id, s), settings)
}

func (v *versions) Grant(ctx context.Context, g storage.Grant, notice ...claybot.Outgoing) ([]claybot.Outgoing, error) {
	out, err := v.Access.Grant(ctx, g, notice...)
	return out, v.count(err, access)
}

func (v *versions) Revoke(ctx context.Context, connector, subject string) error {
	return v.count(v.Access.Revoke(ctx, connector, subject), access)
}

func (v *versions) SetRole(ctx context.Context, c storage.RoleChange) (storage.RoleChange, error) {
	done, err := v.Access.SetRole(ctx, c)
	return done, v.count(err, access)
}

// A page is a connector with one open window, of Ann.
type page struct {
	mu     sync.Mutex
	closed bool
	seen   []string
	texts  []string
	typed  []string
}

func (*page) Name() string { return "chat" }
func (*page) Run(ctx context.Context, _ connectors.Handler) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
func (*page) Health() connectors.Health { return connectors.Health{State: connectors.StateLive} }

func (p *page) Windows() []claybot.Route {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	return []claybot.Route{ann.Route()}
}

func (p *page) note(to *[]string, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*to = append(*to, fmt.Sprintf(format, args...))
}

func (p *page) Accepted(_ claybot.Descriptor, m claybot.AgentMessage) {
	if m.Amends == "" {
		p.note(&p.typed, "%s", m.Text)
	}
}

func (p *page) Changed(_ claybot.Descriptor, m claybot.AgentMessage) {
	p.note(&p.typed, "%s %s %s", m.Type, m.Amends, m.Text)
}

func (p *page) Observe(_ claybot.Route, e claybot.Event) {
	p.note(&p.seen, "%s %d %s", e.Run, e.Seq, e.Type)
}

func (p *page) Preview(_ claybot.Route, _ claybot.RunID, step int, text string) {
	p.note(&p.texts, "%d %s", step, text)
}

// speller is an engine that says what it was told, a word in a second; "bad" fails.
type speller struct{}

func (speller) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		said := t.Messages[len(t.Messages)-1].Text
		text := ""
		for word := range strings.FieldsSeq(said) {
			timer := time.NewTimer(time.Second)
			select {
			case <-ctx.Done():
				timer.Stop()
				yield(claybot.Record{}, context.Cause(ctx))
				return
			case <-timer.C:
			}
			text += word + "!"
			t.Journal.Grow(1, text)
		}
		if strings.Contains(said, "bad") {
			yield(claybot.Record{}, errors.New("bad"))
			return
		}
		yield(claybot.Record{Type: claybot.RecordAssistant, Text: text, Step: 1, At: claybot.Now()}, nil)
	}
}

func inPair(t *testing.T, loss float64, test func(p *pair)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &pair{T: t, page: new(page), loss: loss, access: people.Access{Mode: people.AccessOpen}}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(emptyDir)); err != nil {
			t.Fatal(err)
		}
		var err error
		if p.db, err = sqlite.Open(t.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{Committed: p.committed}); err != nil {
			t.Fatal(err)
		}
		defer p.db.Close()
		p.versions = &versions{Index: p.db, Access: p.db}
		agents, err := files.Open(files.Config{Dir: dir, Index: p.db})
		if err != nil {
			t.Fatal(err)
		}
		defer agents.Close()
		ctx, stop := context.WithCancel(context.Background())
		var ended sync.WaitGroup
		defer ended.Wait()
		defer stop()
		start := func(name string, in agentsystem.Inbox, c connectors.Connector) *agentsystem.AgentSystem {
			members := cluster.New(cluster.Config{Store: p.db, Claims: p.db, Versions: p.versions, Self: storage.Member{Name: name}})
			s := agentsystem.New(agentsystem.Config{
				Stores: agentsystem.Stores{
					Agents: agents, Index: p.versions, Inbox: in, Runs: p.db, Outbox: p.db, Access: p.versions, Counts: p.db,
					Later: p.db, Texts: p.db, Asked: p.db, Parking: p.db,
				},
				Log: slog.New(slog.DiscardHandler), Members: members, Version: "test",
				Hub:            runs.NewSharedHub(func(h storage.Notification) { p.tell(name, h) }),
				PeopleSettings: agentsystem.PeopleSettings{Admission: func() people.Access { return p.access }},
				Settings: agentsystem.Settings{
					Models:  func(claybot.Agent) []string { return []string{"small", "large"} },
					Profile: func(claybot.Descriptor) profiles.Profile { return profiles.Profile{Policy: oneByOne} },
				},
			})
			s.Handle("react", speller{})
			ended.Go(func() {
				if err := s.Run(ctx, c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			joined, leave := context.WithCancel(context.Background())
			ended.Go(func() { _ = members.Run(joined) })
			context.AfterFunc(ctx, leave)
			return s
		}
		p.desk = start("desk", idle{p.db}, p.page)
		p.mill = start("mill", p.db, &line{name: "chat", chat: new(chat), fuse: newFuse(-1)})
		synctest.Wait()
		test(p)
	})
}

// committed tells both nodes what a store that is shared tells of each other.
func (p *pair) committed(c storage.Commit) {
	h := storage.Notification{Due: true, Runs: slices.Clone(c.Joined)}
	for _, e := range c.Events {
		h.Runs = append(h.Runs, e.Run)
	}
	p.tell("", h)
}

func (p *pair) tell(from string, h storage.Notification) {
	h.Member = from
	for name, s := range map[string]*agentsystem.AgentSystem{"desk": p.desk, "mill": p.mill} {
		if s != nil && name != from && (rand.Float64() >= p.loss) {
			s.Heard(h)
		}
	}
}

// TestEndsElsewhere: a caller that waits on one node for messages that another one works
// on hears of every kind of end, with hints and without.
func TestEndsElsewhere(t *testing.T) {
	for _, loss := range []float64{0, 0.5, 1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			inPair(t, loss, func(p *pair) {
				slack := 300 * time.Millisecond
				if loss > 0 {
					slack = 4500 * time.Millisecond // mill looks every 2 s, and so does the caller that waits
				}
				invoke := func(id, text string, meanwhile func()) (inbox.Result, time.Duration) {
					began := time.Now()
					var res []inbox.Result
					done := make(chan struct{})
					go func() {
						defer close(done)
						res, _ = p.desk.Control.Invoke(p.Context(), ann, msg(id, text))
					}()
					if meanwhile != nil {
						time.Sleep(2500 * time.Millisecond)
						meanwhile()
					}
					<-done
					if len(res) != 1 {
						p.Fatalf("%s: %d results", id, len(res))
					}
					return res[0], time.Since(began)
				}
				res, took := invoke("m1", "one two", nil)
				if res.Err != nil || res.Text != "one!two!" || res.State != claybot.RunSucceeded || res.Run == "" || took > 2*time.Second+slack {
					p.Errorf("a good end: %+v after %v", res, took)
				}
				if res, took = invoke("m2", "bad", nil); !failedRun(res.Err) || took > time.Second+slack {
					p.Errorf("a failure: %+v after %v", res, took)
				}
				id, err := p.db.IndexedAgent(p.Context(), ann)
				if err != nil {
					p.Fatal(err)
				}
				long := "a b c d e f g h i j k l m n o p q r s t"
				res, took = invoke("m3", long, func() {
					if _, err := p.desk.Control.Stop(p.Context(), id); err != nil {
						p.Error(err)
					}
				})
				if !errors.Is(res.Err, inbox.ErrCanceled) || took > 2500*time.Millisecond+slack+4*time.Second {
					p.Errorf("a cancel: %+v after %v", res, took)
				}
				res, took = invoke("m4", long, func() {
					if err := p.mill.Post(p.Context(), ann, typed("r1", claybot.MessageReset, "")); err != nil {
						p.Error(err)
					}
				})
				if !errors.Is(res.Err, inbox.ErrReset) || took > 2500*time.Millisecond+slack {
					p.Errorf("a reset: %+v after %v", res, took)
				}
				go func() { _, _ = p.desk.Control.Invoke(p.Context(), ann, msg("m5", long)) }()
				time.Sleep(3 * time.Second)
				res, _ = invoke("m6", "waits", func() {
					if _, err := p.mill.Control.Drop(p.Context(), id, "m6"); err != nil {
						p.Error(err)
					}
				})
				if !errors.Is(res.Err, inbox.ErrDropped) {
					p.Errorf("dropped: %+v", res)
				}
			})
		})
	}
}

// TestWindowElsewhere: a page on one node shows the runs of another one, each event
// once and in order, and the text as it grows.
func TestWindowElsewhere(t *testing.T) {
	for _, loss := range []float64{0, 0.5, 1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			inPair(t, loss, func(p *pair) {
				post := func(id, text string) {
					if err := p.desk.Post(p.Context(), ann, msg(id, text)); err != nil {
						p.Fatal(err)
					}
				}
				post("m1", "one two three")
				post("m2", "four")
				post("m3", "five")
				time.Sleep(15 * time.Second)
				synctest.Wait()
				var want []string
				for _, id := range []claybot.MessageID{"m1", "m2", "m3"} {
					r, err := p.db.Receipt(p.Context(), id)
					if err != nil || r.Run == nil {
						p.Fatalf("%s: %+v, %v", id, r.Run, err)
					}
					for e, err := range p.db.Events(p.Context(), r.Run.ID, 0) {
						if err != nil {
							p.Fatal(err)
						}
						want = append(want, fmt.Sprintf("%s %d %s", e.Run, e.Seq, e.Type))
					}
				}
				p.page.mu.Lock()
				defer p.page.mu.Unlock()
				if !slices.Equal(p.page.seen, want) {
					p.Errorf("seen\n%s\nwant\n%s", strings.Join(p.page.seen, "\n"), strings.Join(want, "\n"))
				}
				if loss == 0 && !slices.Contains(p.page.texts, "1 one!two!") {
					p.Errorf("texts %q", p.page.texts)
				}
			})
		})
	}
}

// TestTypedElsewhere: a page on one node shows what a person writes, edits and deletes on another
// one within a second, also while a run works and notifications are lost.
func TestTypedElsewhere(t *testing.T) {
	for _, loss := range []float64{0, 1} {
		t.Run(fmt.Sprint(loss), func(t *testing.T) {
			inPair(t, loss, func(p *pair) {
				if err := p.desk.Opened(p.Context(), ann); err != nil {
					p.Fatal(err)
				}
				shows := func(m claybot.AgentMessage, want string) {
					p.Helper()
					if err := p.mill.Post(p.Context(), ann, m); err != nil {
						p.Fatal(err)
					}
					time.Sleep(1200 * time.Millisecond)
					p.page.mu.Lock()
					defer p.page.mu.Unlock()
					if !slices.Contains(p.page.typed, want) {
						p.Errorf("after %s the page shows %q", m.ID, p.page.typed)
					}
				}
				shows(msg("m1", strings.Repeat("word ", 30)), strings.Repeat("word ", 30)) // works for half a minute
				shows(msg("m2", "frist"), "frist")
				shows(claybot.AgentMessage{ID: "m2/edit/1", Type: claybot.MessageEdit, Amends: "m2", Text: "first", From: msg("", "").From, At: claybot.Now()}, "edit m2 first")
				shows(claybot.AgentMessage{ID: "m2/deleted", Type: claybot.MessageDelete, Amends: "m2", From: msg("", "").From, At: claybot.Now()}, "delete m2 ")
				if r, err := p.db.Receipt(p.Context(), "m2"); err != nil || r.Skipped != storage.SkippedDeleted {
					p.Errorf("m2 is %q, %v", r.Skipped, err)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestWindowOpenedLate: what a run of another node did between the moment when a page
// was opened and the first look at its window is shown, and nothing from before.
func TestWindowOpenedLate(t *testing.T) {
	inPair(t, 0, func(p *pair) {
		open := func(is bool) {
			p.page.mu.Lock()
			defer p.page.mu.Unlock()
			p.page.closed = !is
		}
		runOf := func(id claybot.MessageID, text string) claybot.RunID {
			if err := p.desk.Post(p.Context(), ann, msg(string(id), text)); err != nil {
				p.Fatal(err)
			}
			time.Sleep(5 * time.Second)
			r, err := p.db.Receipt(p.Context(), id)
			if err != nil || r.Run == nil || !r.Run.State.Ended() {
				p.Fatalf("%s: %+v, %v", id, r.Run, err)
			}
			return r.Run.ID
		}
		open(false)
		time.Sleep(2 * time.Second)
		before := runOf("m1", "one")
		if err := p.desk.Opened(p.Context(), ann); err != nil {
			p.Fatal(err)
		}
		after := runOf("m2", "two")
		open(true)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		p.page.mu.Lock()
		defer p.page.mu.Unlock()
		seen := strings.Join(p.page.seen, "\n")
		if !strings.Contains(seen, string(after)+" 1 ") || !strings.Contains(seen, string(claybot.EventRunFinished)) || strings.Contains(seen, string(before)) {
			p.Errorf("seen\n%s\nwant all of %s and nothing of %s", seen, after, before)
		}
	})
}

// TestMemoryElsewhere: settings and grants that one node changes count on the other
// within two seconds, without a hint and at little cost.
func TestMemoryElsewhere(t *testing.T) {
	inPair(t, 1, func(p *pair) {
		ctx := p.Context()
		if err := p.desk.Post(ctx, ann, msg("m1", "hi")); err != nil {
			p.Fatal(err)
		}
		id, err := p.db.IndexedAgent(ctx, ann)
		if err != nil {
			p.Fatal(err)
		}
		if err := p.mill.Profiles.Configure(ctx, id, claybot.Settings{Model: "large", Approved: []string{"pay"}}, "ann"); err != nil {
			p.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if own := p.desk.Profiles.OwnSettings(id); own.Model != "large" {
			p.Errorf("settings on the other node: %+v", own)
		}
		// At once, a change stands on what is stored and not on what is remembered.
		if err := p.mill.Profiles.RemoveRule(ctx, id, "pay"); err != nil {
			p.Fatal(err)
		}
		if v, err := p.desk.Profiles.Settings(ctx, id); err != nil || len(v.Own.Approved) > 0 {
			p.Errorf("a rule that was removed is back: %+v, %v", v.Own, err)
		}
		if err := p.desk.Profiles.RemoveRule(ctx, id, "pay"); !errors.Is(err, storage.ErrNotFound) {
			p.Errorf("removed twice: %v", err)
		}

		p.access.Mode = people.AccessAllowlist
		bob := claybot.User("chat", "dm-bob", "bob")
		comesIn := func(m string) bool {
			if err := p.desk.Post(ctx, bob, msg(m, m)); err != nil {
				p.Fatal(err)
			}
			_, err := p.db.Receipt(ctx, claybot.MessageID(m))
			return err == nil
		}
		if comesIn("b1") {
			p.Error("a stranger comes in")
		}
		if err := p.mill.People.Allow(ctx, "chat", "bob"); err != nil {
			p.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if !comesIn("b2") {
			p.Error("let in on one node, a stranger on the other")
		}
		if err := p.mill.Control.Revoke(ctx, "chat", "bob"); err != nil {
			p.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if comesIn("b3") {
			p.Error("revoked on one node, let in on the other")
		}

		p.versions.mu.Lock()
		before := p.versions.asked
		p.versions.mu.Unlock()
		time.Sleep(time.Minute)
		synctest.Wait()
		p.versions.mu.Lock()
		defer p.versions.mu.Unlock()
		if n := p.versions.asked - before; n > 2*41 {
			p.Errorf("two nodes ask %d times in a minute", n)
		}
	})
}
