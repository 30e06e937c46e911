package storagetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// ann is the person of userMessage and reply, whose agent is that of the bed.
func (b *bed) ann() storage.Person {
	return storage.Person{
		Owners: []string{"telegram/U1"},
		Agents: map[claybot.AgentID]claybot.Descriptor{b.agent: claybot.User("telegram", "C1", "U1")},
	}
}

// populate fills every table in which something of ann can be, and returns the agent of a
// second person who has as much.
func (b *bed) populate() (other claybot.AgentID) {
	b.Helper()
	b.says(1)
	b.says(2)
	o := reply("notice")
	o.Kind, o.Run = claybot.OutgoingNotice, ""
	bob := claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("telegram", "C2", "U2")}
	b.noError(b.IndexAgents(b.ctx, bob))
	of := o
	of.ID, of.Route = "notice of bob", claybot.Route{Connector: "telegram", ChannelID: "C2", UserID: "U2"}
	ok(b.Enqueue(b.ctx, o, of))(b)
	for _, id := range []string{o.ID, of.ID} {
		b.noError(b.attempt(id))
		b.resolve(id, storage.Resolution{State: claybot.SendSent, Receipt: id})
	}
	for _, owner := range []string{"telegram/U1", "telegram/U2"} {
		m := storage.Memory{Path: "a.md", Text: "secret", MemoryChange: storage.MemoryChange{By: "operator"}}
		b.noError(b.SaveMemory(b.ctx, "owner/"+owner, m, 1000))
		for _, scope := range []string{"owner/" + owner, "owner/" + owner + "/in/telegram/-1"} {
			b.noError(b.SaveDocument(b.ctx, scope, "f", "secret", 1000))
		}
		b.noError(b.SetCheckpoint(b.ctx, storage.CheckpointVoices+"/"+owner, "x"))
		b.noError(b.SetCheckpoint(b.ctx, storage.CheckpointAsked+owner, "secret"))
	}
	said, by := inGroup("", "8", "secret", 1), inGroup("", "9", "of bob", 1)
	by.UserID = "U2"
	b.noError(b.KeepSaid(b.ctx, 5, said, by))
	for _, user := range []string{"U1", "U2"} {
		ok(b.SavePairing(b.ctx, storage.Pairing{Code: "code" + user, Connector: "telegram", ChannelID: user, UserID: user, Name: "secret", Expires: claybot.Now() + 1e6}))(b)
	}
	return bob.ID
}

// erasedAnn checks that nothing is left of ann but what guards against a second run or a
// second notice, and that all of the other person stays.
func (b *bed) erasedAnn() {
	b.Helper()
	for n := 1; n <= 2; n++ {
		b.kept(n, "message ")
		m := ok(b.Receipt(b.ctx, claybot.MessageID(fmt.Sprint("m-r", n))))(b).Message
		b.equal("a message", [2]string{m.Text, m.From.Name}, [2]string{})
		if b.post(fmt.Sprint("m-r", n), instant).Added {
			b.Errorf("message %d would run again", n)
		}
	}
	b.equal("a notice", ok(b.OutgoingByID(b.ctx, "notice"))(b).Text, "")
	b.equal("enqueued again", len(ok(b.Enqueue(b.ctx, reply("notice")))(b)), 0)
	b.equal("notice of bob", ok(b.OutgoingByID(b.ctx, "notice of bob"))(b).Text, "text of notice")
	for owner, want := range map[string]int{"telegram/U1": 0, "telegram/U2": 1} {
		b.equal("notes", len(ok(b.MemoryVersions(b.ctx, "owner/"+owner, "", 9))(b)), want)
		b.equal("notes are listed", len(ok(b.Memories(b.ctx, "owner/"+owner))(b)) > 0, want > 0)
		b.equal("notes found", len(ok(b.FindMemories(b.ctx, []string{"owner/" + owner}, "secret", 9))(b)), want)
		for _, scope := range []string{"owner/" + owner, "owner/" + owner + "/in/telegram/-1"} {
			b.equal("documents", len(ok(b.Documents(b.ctx, scope))(b)), want)
		}
		b.equal("manner", len(ok(b.Checkpoint(b.ctx, storage.CheckpointVoices+"/"+owner))(b)), want)
		b.equal("request", len(ok(b.Checkpoint(b.ctx, storage.CheckpointAsked+owner))(b)), 6*want)
	}
	b.equal("overheard", b.heard("-1", ""), []string{"9 of bob"})
	pairings := ok(b.Pairings(b.ctx))(b)
	b.equal("requests", len(pairings) == 1 && pairings[0].UserID == "U2", true)
}

// cutContext ends after some steps of a call: each looks at its context before it begins.
type cutContext struct {
	context.Context
	left int
}

func (c *cutContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return c.Context.Err()
}

var eraseTests = []storeTest{
	{"a person", func(b *bed) {
		b.populate()
		want := storage.Erased{Runs: 2, Events: len(b.events("r1", 0)) + len(b.events("r2", 0)), Messages: 2, Outgoing: 3, Notes: 1, Documents: 2, Overheard: 1, Settings: 2}
		b.equal("dry", ok(b.Erase(b.ctx, b.ann(), true))(b), want)
		b.kept(1, "events run message answer ")
		b.equal("erased", ok(b.Erase(b.ctx, b.ann(), false))(b), want)
		b.erasedAnn()
		b.again()
		b.erasedAnn()
		b.equal("erased again", ok(b.Erase(b.ctx, b.ann(), false))(b), storage.Erased{})
		b.equal("left to erase", ok(b.Erase(b.ctx, b.ann(), true))(b), storage.Erased{})
	}},
	{"a call that is cut short goes on", func(b *bed) {
		b.populate()
		for n := 0; ; n++ {
			_, err := b.Erase(&cutContext{b.ctx, n}, b.ann(), false)
			if err == nil {
				if n < 5 {
					b.Errorf("the call has %d steps, which cannot be", n)
				}
				break
			}
			b.is(err, context.Canceled)
		}
		b.erasedAnn()
	}},
	{"unfinished work stays", func(b *bed) {
		l, _ := b.begin("r1")
		b.post("m2", instant)
		ok(b.Enqueue(b.ctx, reply("unsent")))(b)
		b.parks("C1", "parked")
		p := b.ann()
		b.equal("unfinished", ok(b.Unfinished(b.ctx, p))(b), storage.Unfinished{Parked: 1, Outgoing: 1})
		b.equal("of another person", ok(b.Unfinished(b.ctx, storage.Person{Owners: []string{"telegram/U2"}}))(b), storage.Unfinished{})
		b.equal("erased", ok(b.Erase(b.ctx, p, false))(b), storage.Erased{})
		b.equal("unsent", b.unsent().Text, "text of unsent")
		b.equal("parked", b.parkedIDs("C1"), []claybot.MessageID{"parked"})
		b.succeed(l, "r1", reply("o1"))
		b.equal("erased before its answer is sent", ok(b.Erase(b.ctx, p, false))(b).Runs, 0)
		b.equal("next", string(b.hold(nodeOne).Waiting[0].ID), "m2")
	}},
	{"the same key with another text", func(b *bed) { // ids that a platform counts anew
		m := userMessage("x")
		m.Keys = []string{"k1"}
		b.deliver(storage.Posting{To: b.agent, Message: m})
		h := b.hold(nodeOne)
		ok(b.Begin(b.ctx, h.Lease, "r1", ids(h.Waiting), storage.Beginning{}))(b)
		b.succeed(h.Lease, "r1")
		ok(b.Erase(b.ctx, b.ann(), false))(b)
		b.equal("again", b.deliver(storage.Posting{To: b.agent, Message: m}).Added, false)
		m.Keys = []string{"k2"}
		b.equal("another", b.deliver(storage.Posting{To: b.agent, Message: m}).Added, true)
	}},
}

// erased checks that the files of deleted agents are found by their person, and erased.
func erased(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	owners := []string{"web/u", "web/other name"}
	deleted := func(want ...claybot.AgentID) {
		t.Helper()
		got := try(u.DeletedAgents(ctx, owners))(t)
		ok := len(got) == len(want)
		for _, id := range want {
			ok = ok && got[id].OwnerID() == "web/u"
		}
		if !ok {
			t.Errorf("deleted are %v, want %v", got, want)
		}
	}
	a, other := try(u.AgentFor(ctx, claybot.User("web", "main", "u")))(t), try(u.AgentFor(ctx, claybot.User("web", "main", "v")))(t)
	deleted()
	for _, id := range []claybot.AgentID{a.ID, other.ID} {
		h := try(u.OpenHistory(ctx, u.Lease(id)))(t)
		if err := h.Append(ctx, said(1)); err != nil {
			t.Fatal(err)
		}
		_ = try(u.SaveResult(ctx, id, "call", "long"))(t)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := u.Delete(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	deleted(a.ID)
	for range 2 {
		if err := u.EraseDeleted(ctx, a.ID); err != nil {
			t.Fatal(err)
		}
		deleted()
	}
	if err := u.EraseDeleted(ctx, "../x"); err == nil {
		t.Error("erased what is no agent")
	}
	owners = []string{"web/v"}
	if got := try(u.DeletedAgents(ctx, owners))(t); len(got) != 1 || got[other.ID].UserID != "v" {
		t.Errorf("left are %v", got)
	}
	u.Agents = u.Reopen()
	if next := try(u.AgentFor(ctx, claybot.User("web", "main", "u")))(t); next.ID == a.ID {
		t.Error("the erased agent is back")
	}
}
