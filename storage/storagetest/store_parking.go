package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// parks parks a message for the agent of a channel.
func (b *bed) parks(channel, id string, keys ...string) bool {
	b.Helper()
	m := userMessage(id)
	m.Keys = keys
	return ok(b.Park(b.ctx, storage.Parked{To: claybot.User("telegram", channel, "U1"), Message: m, Cause: "why " + id}, storage.ParkRules{}))(b)
}

// parkedKey is the key of the agent of a channel.
func parkedKey(channel string) string { return claybot.User("telegram", channel, "U1").Key() }

// parkedIDs are the messages parked for the agent of a channel.
func (b *bed) parkedIDs(channel string) (ids []claybot.MessageID) {
	b.Helper()
	for _, p := range ok(b.ParkedOf(b.ctx, parkedKey(channel), 100))(b) {
		ids = append(ids, p.Message.ID)
	}
	return ids
}

var parkingTests = []storeTest{
	{"kept in order until they are taken", func(b *bed) {
		start := claybot.Now()
		for i, id := range []string{"x1", "y1", "x2", "x3", "y2"} {
			if !b.parks("C"+id[:1], id) {
				b.Fatalf("message %d was not parked", i)
			}
			time.Sleep(ms)
		}
		b.again()
		to := claybot.User("telegram", "Cx", "U1")
		x1, x2 := userMessage("x1"), userMessage("x2")
		x1.At, x2.At = start, start+2
		got := ok(b.ParkedOf(b.ctx, to.Key(), 2))(b)
		b.equal("the oldest two", got, []storage.Parked{
			{To: to, Message: x1, Cause: "why x1", Key: to.Key(), Episode: "x1", At: start},
			{To: to, Message: x2, Cause: "why x2", Key: to.Key(), Episode: "x1", At: start + 2},
		})
		b.equal("agents", ok(b.ParkedAgents(b.ctx, 9))(b), []storage.ParkedAgent{{Key: to.Key(), Messages: 3}, {Key: parkedKey("Cy"), Messages: 2}})
		b.equal("one agent", ok(b.ParkedAgents(b.ctx, 1))(b), []storage.ParkedAgent{{Key: to.Key(), Messages: 3}})
		b.equal("totals", ok(b.ParkedTotals(b.ctx))(b), storage.ParkedTotals{Messages: 5, Agents: 2, Oldest: start})
		for range 2 {
			b.noError(b.Unpark(b.ctx, "x1"))
		}
		b.equal("one taken", b.parkedIDs("Cx"), []claybot.MessageID{"x2", "x3"})
		b.equal("the episode goes on", ok(b.ParkedOf(b.ctx, to.Key(), 1))(b)[0].Episode, "x1")
		b.noError(errors.Join(b.Unpark(b.ctx, "x2"), b.Unpark(b.ctx, "x3")))
		b.equal("all taken", ok(b.Arrival(b.ctx, to))(b).Parked, false)
		b.equal("others", ok(b.Arrival(b.ctx, claybot.User("telegram", "Cy", "U1")))(b).Parked, true)
		b.parks("Cx", "x4")
		b.equal("a new episode", ok(b.ParkedOf(b.ctx, to.Key(), 1))(b)[0].Episode, "x4")
	}},
	{"what a message meets changes at once", func(b *bed) {
		parked, asked := claybot.User("telegram", "Cx", "U1"), claybot.User("telegram", "asks", "U1")
		meets := func(what string, d claybot.Descriptor, want storage.Arrival) {
			b.Helper()
			got := ok(b.Arrival(b.ctx, d))(b)
			got.Agent = nil
			b.equal(what, got, want)
		}
		agent := b.newAgent("asks")
		b.to(agent, b.typed(claybot.MessageUser, "m1").Message)
		l := b.hold("n").Lease
		_, err := b.Begin(b.ctx, l, "r1", []claybot.MessageID{"m1"}, storage.Beginning{})
		b.noError(err)
		meets("nothing", parked, storage.Arrival{})
		b.parks("Cx", "x1")
		meets("parked", parked, storage.Arrival{Parked: true})
		meets("of another agent", asked, storage.Arrival{})
		b.noError(b.Unpark(b.ctx, "x1"))
		meets("taken", parked, storage.Arrival{})
		b.ask(l, "r1", question("q1"))
		meets("asked", asked, storage.Arrival{Asked: true, Open: true})
		meets("another agent is asked", parked, storage.Arrival{Open: true})
		b.to(agent, answered("q1", "a", "r1"))
		meets("answered", asked, storage.Arrival{})
		b.parks("Cx", "x2")
		meets("parked again", parked, storage.Arrival{Parked: true})
		_, err = b.EndParked(b.ctx, ok(b.ParkedOf(b.ctx, parked.Key(), 1))(b)[0], "stopped")
		b.noError(err)
		meets("ended", parked, storage.Arrival{})
	}},
	{"once", func(b *bed) {
		for i, step := range []struct {
			id    string
			keys  []string
			added bool
		}{
			{"1", []string{"a"}, true},
			{"1", []string{"a"}, false},
			{"1", nil, false},
			{"1", []string{"b"}, true}, // a known id under other keys: reused
			{"1", []string{"b"}, false},
		} {
			if got := b.parks("C1", step.id, step.keys...); got != step.added {
				b.Fatalf("step %d: parked %v, want %v", i+1, got, step.added)
			}
		}
		b.equal("parked", b.parkedIDs("C1"), []claybot.MessageID{"1", "1#b"})
		m := userMessage("m")
		m.Keys = []string{"k"}
		b.equal("posted", b.deliver(storage.Posting{To: b.agent, Message: m}).Added, true)
		b.equal("a posted id", b.parks("C1", "m", "k"), false)
		b.equal("a posted key", b.parks("C1", "other", "k"), false)
		b.equal("duplicates", b.figures().Duplicates, 5)
		for i := range 2 { // what follows from it is not done
			p := storage.Parked{To: claybot.User("telegram", "C1", "U1"), Message: m}
			b.equal("a posted id after all", ok(b.Park(b.ctx, p, storage.ParkRules{Posted: true}))(b), i == 0)
		}
		if _, err := b.Park(b.ctx, storage.Parked{To: claybot.User("telegram", "C1", "U1")}, storage.ParkRules{}); err == nil {
			b.Fatal("a message without an id was parked")
		}
	}},
	{"posting a parked message again and again", func(b *bed) {
		b.parks("C1", "1", "a")
		p := ok(b.ParkedOf(b.ctx, parkedKey("C1"), 1))(b)[0]
		for i := range 2 { // a crash between the post and the end of the parking
			b.equal("added", b.deliver(storage.Posting{To: b.agent, Message: p.Message}).Added, i == 0)
		}
		b.noError(b.Unpark(b.ctx, p.Message.ID))
		b.equal("redelivered", b.parks("C1", "1", "a"), false)
		b.equal("waiting", len(ok(b.Waiting(b.ctx, b.agent, 9))(b)), 1)
	}},
	{"behind others only", func(b *bed) {
		p := storage.Parked{To: claybot.User("telegram", "C1", "U1"), Message: userMessage("1")}
		_, err := b.Park(b.ctx, p, storage.ParkRules{Behind: true})
		b.is(err, storage.ErrNotFound)
		b.parks("C2", "other")
		_, err = b.Park(b.ctx, p, storage.ParkRules{Behind: true})
		b.is(err, storage.ErrNotFound)
		b.parks("C1", "0")
		b.equal("behind", ok(b.Park(b.ctx, p, storage.ParkRules{Behind: true}))(b), true)
		b.equal("order", b.parkedIDs("C1"), []claybot.MessageID{"0", "1"})
	}},
	{"bounded", func(b *bed) {
		rules := storage.ParkRules{All: 3, Agent: 2}
		park := func(channel, id string) error {
			_, err := b.Park(b.ctx, storage.Parked{To: claybot.User("telegram", channel, "U1"), Message: userMessage(id)}, rules)
			return err
		}
		b.noError(errors.Join(park("C1", "1"), park("C1", "2"), park("C1", "2")))
		b.is(park("C1", "3"), storage.ErrTooMany)
		b.equal("known at the limit", park("C1", "1"), nil)
		b.noError(park("C2", "4"))
		err := park("C2", "5")
		b.is(err, storage.ErrParkingFull)
		b.equal("class", storage.ClassOf(err), storage.ClassStore)
		b.noError(errors.Join(b.Unpark(b.ctx, "1"), park("C2", "5")))
	}},
	{"bounded for a person", func(b *bed) {
		park := func(channel, user, id, cause string, size int) error {
			m := userMessage(id)
			m.Text = strings.Repeat("x", size)
			_, err := b.Park(b.ctx, storage.Parked{To: claybot.User("telegram", channel, user), Message: m, Cause: cause}, storage.ParkRules{Person: 2, PersonBytes: 100})
			return err
		}
		b.noError(errors.Join(park("C1", "U1", "1", "a", 60), park("C1", "U1", "b", "b", 60)))
		b.is(park("C2", "U1", "2", "a", 41), storage.ErrTooMany)
		b.noError(park("C2", "U1", "3", "a", 40))
		b.is(park("C3", "U1", "4", "a", 0), storage.ErrTooMany)
		b.equal("known at the limit", park("C2", "U1", "3", "a", 40), nil)
		b.noError(park("C3", "U2", "5", "a", 100))
		b.is(park("C3", "U3", "6", "a", 101), storage.ErrTooMany)
	}},
	{"parked again", func(b *bed) {
		b.parks("C1", "1", "a")
		b.parks("C1", "2")
		p := ok(b.ParkedOf(b.ctx, parkedKey("C1"), 1))(b)[0]
		p.Cause, p.Message.Text = "other", "other text"
		b.noError(b.Repark(b.ctx, p))
		got := ok(b.ParkedOf(b.ctx, parkedKey("C1"), 1))(b)[0]
		b.equal("parked", got, p)
		b.noError(b.Unpark(b.ctx, "1"))
		b.is(b.Repark(b.ctx, p), storage.ErrNotFound)
		b.equal("order", b.parkedIDs("C1"), []claybot.MessageID{"2"})
		p.Message.ID, p.Cause = "3", storage.ParkedUnapproved
		ok(b.Park(b.ctx, storage.Parked{To: claybot.User("telegram", "C7", "U1"), Message: p.Message, Cause: p.Cause}, storage.ParkRules{}))(b)
		p.Message.ID = "4"
		ok(b.Park(b.ctx, storage.Parked{To: claybot.User("telegram", "C7", "U1"), Message: p.Message, Cause: "behind"}, storage.ParkRules{Behind: true}))(b)
		b.equal("cause", ok(b.ParkedOf(b.ctx, parkedKey("C7"), 2))(b)[1].Cause, "behind")
	}},
	{"ended with a reason", func(b *bed) {
		for _, c := range []struct {
			channel string // C9 has no agent
			parked  bool
			agent   claybot.AgentID
		}{{"C1", true, b.agent}, {"C1", false, b.agent}, {"C9", true, ""}, {"C9", false, ""}} {
			id := fmt.Sprint(c.channel, c.parked)
			m := userMessage(id)
			m.Keys = []string{"key " + id}
			p := storage.Parked{To: claybot.User("telegram", c.channel, "U1"), Message: m, Cause: "why"}
			if c.parked {
				ok(b.Park(b.ctx, p, storage.ParkRules{}))(b)
				p = ok(b.ParkedOf(b.ctx, parkedKey(c.channel), 1))(b)[0]
			}
			for i := range 2 {
				b.equal("ended", ok(b.EndParked(b.ctx, p, "revoked"))(b), i == 0)
			}
			b.equal("left", b.parkedIDs(c.channel), []claybot.MessageID(nil))
			r := ok(b.Receipt(b.ctx, claybot.MessageID(id)))(b)
			b.equal("receipt", []any{r.Agent, r.Skipped, r.Parked, r.Message.Text}, []any{c.agent, "revoked", "", m.Text})
			b.found(id, claybot.MessageID(id))
			b.equal("parked again", b.parks(c.channel, id, "key "+id), false)
			b.equal("posted again", b.deliver(storage.Posting{To: b.agent, Message: m}).Added, false)
			b.equal("posted again under its key", b.deliver(storage.Posting{To: b.agent, Message: claybot.AgentMessage{ID: "as " + claybot.MessageID(id), Type: claybot.MessageUser, Keys: m.Keys}}).Added, false)
		}
		b.equal("waiting", len(ok(b.Waiting(b.ctx, b.agent, 9))(b)), 0)
	}},
	{"a posted message is not ended", func(b *bed) {
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("1")})
		ok(b.Park(b.ctx, storage.Parked{To: claybot.User("telegram", "C1", "U1"), Message: userMessage("1")}, storage.ParkRules{Posted: true}))(b)
		b.equal("ended", ok(b.EndParked(b.ctx, ok(b.ParkedOf(b.ctx, parkedKey("C1"), 1))(b)[0], "operator"))(b), false)
		b.equal("left", b.parkedIDs("C1"), []claybot.MessageID(nil))
		b.equal("waiting", len(ok(b.Waiting(b.ctx, b.agent, 9))(b)), 1)
	}},
	{"receipt of a parked message", func(b *bed) {
		b.parks("C1", "1", "a")
		b.parks("C9", "2")
		b.parks("C9", "3")
		b.found("1", "1")
		r := ok(b.Receipt(b.ctx, "1"))(b)
		b.equal("of an agent", []any{r.Agent, r.Parked, r.Stored, r.Message.ID}, []any{b.agent, "why 1", claybot.Now(), "1"})
		r = ok(b.Receipt(b.ctx, "3"))(b)
		b.equal("of none yet", []any{r.Agent, r.Parked, r.Ahead, r.Before}, []any{"", "why 3", 1, []claybot.MessageID{"2"}})
		b.deliver(storage.Posting{To: b.agent, Message: userMessage("1")})
		b.found("1", "1")
		b.equal("posted", ok(b.Receipt(b.ctx, "1"))(b).Parked, "")
	}},
	{"in order, from many at once", func(b *bed) {
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for k := range 10 {
					b.parks("C1", fmt.Sprintf("%d.%d", i, k))
				}
			})
		}
		group.Wait()
		got := b.parkedIDs("C1")
		b.equal("all", len(got), 80)
		for i := range 8 {
			last := -1
			for k := range 10 {
				at := slices.Index(got, claybot.MessageID(fmt.Sprintf("%d.%d", i, k)))
				if at <= last {
					b.Fatalf("message %d.%d stands at %d, the one before at %d", i, k, at, last)
				}
				last = at
			}
		}
		list := ok(b.ParkedOf(b.ctx, parkedKey("C1"), 100))(b)
		b.equal("one episode", slices.IndexFunc(list, func(p storage.Parked) bool { return p.Episode != got[0] }), -1)
	}},
}
