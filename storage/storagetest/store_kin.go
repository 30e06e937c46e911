package storagetest

import (
	"fmt"
	"iter"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// child makes a subagent of parent.
func (b *bed) child(uid string, parent claybot.AgentID) claybot.AgentID {
	b.Helper()
	a := claybot.Agent{ID: claybot.NewID(), Descriptor: subagent(uid, parent), CreatedAt: claybot.Now()}
	b.noError(b.IndexAgents(b.ctx, a))
	return a.ID
}

// to posts a message to an agent.
func (b *bed) to(agent claybot.AgentID, m claybot.AgentMessage) storage.Posted {
	b.Helper()
	return b.deliver(storage.Posting{To: agent, Message: m})
}

func (b *bed) agents(list iter.Seq2[storage.IndexEntry, error]) (ids []claybot.AgentID) {
	b.Helper()
	for e, err := range list {
		b.noError(err)
		ids = append(ids, e.ID)
	}
	return ids
}

var kinTests = []storeTest{
	{"an entry tells the run and the birth", func(b *bed) {
		at := claybot.Now()
		id := b.child("1", b.agent)
		b.begin("r1")
		time.Sleep(time.Second)
		b.equal("born", ok(b.IndexedAgentByID(b.ctx, id))(b).CreatedAt, at)
		b.equal("run", ok(b.IndexedAgentByID(b.ctx, b.agent))(b).Run, "r1")
		d := subagent("1", b.agent)
		d.Name, d.Owner = "another", "slack/U2"
		b.noError(b.IndexAgents(b.ctx, claybot.Agent{ID: id, Descriptor: d, CreatedAt: claybot.Now()}))
		e := ok(b.IndexedAgentByID(b.ctx, id))(b)
		b.equal("renamed", []any{e.Descriptor, e.CreatedAt}, []any{d, at})
		b.equal("found by its identity", ok(b.IndexedAgent(b.ctx, d.Identity()))(b), id)
	}},
	{"foreground", func(b *bed) { // ID-11
		second, never := b.newAgent("C2"), b.newAgent("C3")
		slack := claybot.Agent{ID: claybot.NewID(), Descriptor: claybot.User("slack", "D1", "U2")}
		b.noError(b.IndexAgents(b.ctx, slack))
		kid := b.child("1", b.agent)
		b.equal("no person wrote", len(b.agents(b.Foreground(b.ctx, nil))), 0)
		// In one millisecond the later one is the newer one, whatever its id.
		for i, id := range []claybot.AgentID{second, b.agent, second, b.agent, slack.ID, second} {
			b.to(id, userMessage(fmt.Sprint("m", i)))
		}
		b.to(kid, userMessage("said to a child"))
		b.equal("ties", b.agents(b.Foreground(b.ctx, nil)), []claybot.AgentID{second, slack.ID, b.agent})
		b.again()
		b.equal("after a restart", b.agents(b.Foreground(b.ctx, nil)), []claybot.AgentID{second, slack.ID, b.agent})
		time.Sleep(ms)
		b.to(b.agent, userMessage("newest"))
		b.to(b.agent, userMessage("newest")) // a repeat moves no agent
		b.to(second, note("system", claybot.KindMessage))
		b.deliver(storage.Posting{To: never, Message: userMessage("stop"), Skip: "x"})
		b.equal("later", b.agents(b.Foreground(b.ctx, nil)), []claybot.AgentID{never, b.agent, second, slack.ID})
		for _, tt := range []struct {
			owners []string
			want   []claybot.AgentID
		}{
			{[]string{"telegram/U1"}, []claybot.AgentID{never, b.agent, second}},
			{[]string{"slack/U2", "telegram/U1", "x/y"}, []claybot.AgentID{never, b.agent, second, slack.ID}},
			{[]string{"telegram/U2"}, nil},
			{[]string{""}, nil},
			{[]string{}, nil},
		} {
			b.equal(fmt.Sprint(tt.owners), b.agents(b.Foreground(b.ctx, tt.owners)), tt.want)
		}
		for _, err := range b.Foreground(b.ctx, nil) { // a reader may stop
			b.noError(err)
			break
		}
	}},
	{"many foreground agents", func(b *bed) {
		var want []claybot.AgentID
		for i := range 120 {
			id := b.newAgent(fmt.Sprint("many", i))
			b.to(id, userMessage(fmt.Sprint("m", i)))
			want = append([]claybot.AgentID{id}, want...)
			if i%3 == 0 {
				time.Sleep(ms)
			}
		}
		b.equal("all", b.agents(b.Foreground(b.ctx, nil)), want)
		b.equal("of the owner", b.agents(b.Foreground(b.ctx, []string{"telegram/U1"})), want)
	}},
	{"children", func(b *bed) {
		kids := []claybot.AgentID{}
		for i := range 3 {
			kids = append(kids, b.child(fmt.Sprint(i), b.agent))
			time.Sleep(ms)
		}
		b.child("0", kids[0]) // a grandchild
		var got []claybot.AgentID
		for _, e := range ok(b.Children(b.ctx, b.agent))(b) {
			got = append(got, e.ID)
		}
		b.equal("children", got, kids)
		b.equal("of a leaf", len(ok(b.Children(b.ctx, kids[2]))(b)), 0)
		b.equal("of no agent", len(ok(b.Children(b.ctx, ""))(b)), 0)
		b.noError(b.UnindexAgent(b.ctx, kids[1]))
		b.equal("after one is gone", len(ok(b.Children(b.ctx, b.agent))(b)), 2)
	}},
	{"started", func(b *bed) {
		begin := claybot.Now()
		for i := range 3 {
			d := subagent(fmt.Sprint(i), claybot.NewID())
			d.Root = b.agent
			b.noError(b.IndexAgents(b.ctx, claybot.Agent{ID: claybot.NewID(), Descriptor: d, CreatedAt: claybot.Now()}))
			time.Sleep(time.Second)
		}
		for _, tt := range []struct {
			root  claybot.AgentID
			since claybot.Time
			want  int
		}{
			{b.agent, 0, 3},
			{b.agent, begin, 3},
			{b.agent, begin + 1, 2},
			{b.agent, begin + 2000, 1},
			{b.agent, begin + 2001, 0},
			{"other", 0, 0},
			{"", 0, 0},
		} {
			b.equal(fmt.Sprintf("%.5s since %d", tt.root, tt.since-begin), ok(b.Started(b.ctx, tt.root, tt.since))(b), tt.want)
		}
	}},
}
