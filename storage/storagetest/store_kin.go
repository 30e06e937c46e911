package storagetest

import (
	"fmt"
	"iter"
	"slices"
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

// listed are the agents of a list, sorted.
func listed(entries []storage.IndexEntry) (ids []claybot.AgentID) {
	for _, e := range entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

var kinTests = []storeTest{
	{"agents of an owner and of a channel", func(b *bed) {
		odd := "C\"1,\u00ff<" // whatever a platform calls a channel
		ids := make(map[claybot.Descriptor]claybot.AgentID)
		for _, d := range []claybot.Descriptor{
			claybot.User("telegram", "C1", "U2"), claybot.User("telegram", "C1", "\U0010FFFF"), claybot.User("telegram", "C1", `"]`),
			inThread(claybot.User("telegram", "C1", "U1"), "7"), inThread(claybot.User("telegram", "C1", "U2"), `"]`),
			claybot.User("telegram", "C11", "U1"), claybot.User("telegram", "C", "U1"), claybot.User("telegram2", "C1", "U1"), claybot.User("slack", "C1", "U1"),
			claybot.User("telegram", odd, "U1"), claybot.User("telegram", odd, "U2"), claybot.User("telegram", odd+"1", "U1"),
			{Type: claybot.AgentCron, UID: "1", Owner: "telegram/U1"},
			{Type: claybot.AgentCron, UID: "2", Owner: "telegram/U11"},
			{Type: claybot.AgentCron, UID: "3"},
			{Type: claybot.AgentSubagent, UID: "1", Parent: b.agent, Owner: "telegram/U1"},
			{Type: claybot.AgentHeartbeat},
		} {
			ids[d] = claybot.NewID()
			b.noError(b.IndexAgents(b.ctx, claybot.Agent{ID: ids[d], Descriptor: d}))
		}
		ids[claybot.User("telegram", "C1", "U1")] = b.agent
		want := func(of func(d claybot.Descriptor) bool) (all []claybot.AgentID) {
			for d, id := range ids {
				if of(d) {
					all = append(all, id)
				}
			}
			slices.Sort(all)
			return all
		}
		check := func(what string) {
			for _, owner := range []string{"telegram/U1", "telegram/U2", "slack/U1", "telegram/", "", "nobody"} {
				got := listed(ok(b.OwnedAgents(b.ctx, owner))(b))
				b.equal(what+": owner "+owner, got, want(func(d claybot.Descriptor) bool { return owner != "" && d.OwnerID() == owner }))
			}
			for _, c := range [][2]string{{"telegram", "C1"}, {"telegram", odd}, {"telegram", "C"}, {"telegram", "C2"}, {"telegram", ""}, {"slack", "C1"}, {"", ""}} {
				got := listed(ok(b.ChannelAgents(b.ctx, c[0], c[1]))(b))
				b.equal(what+": channel "+fmt.Sprint(c), got, want(func(d claybot.Descriptor) bool { return c[0] != "" && d.Connector == c[0] && d.ChannelID == c[1] }))
			}
		}
		check("new")
		moved, to := claybot.User("telegram", "C1", "U2"), claybot.User("telegram", "C2", "U2")
		b.noError(b.IndexAgents(b.ctx, claybot.Agent{ID: ids[moved], Descriptor: to}))
		ids[to] = ids[moved]
		delete(ids, moved)
		check("moved")
		b.to(b.agent, userMessage("m1"))
		for _, e := range ok(b.ChannelAgents(b.ctx, "telegram", "C1"))(b) {
			b.equal("entry", e, ok(b.IndexedAgentByID(b.ctx, e.ID))(b))
		}
	}},
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
