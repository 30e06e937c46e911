package storagetest

import (
	"fmt"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var accessTests = []storeTest{
	{"grants", func(b *bed) {
		g := storage.Grant{Connector: "telegram", Subject: "U1", Name: "Ann", At: 5}
		ok(b.Grant(b.ctx, g))(b)
		again := g
		again.At = 9
		ok(b.Grant(b.ctx, again))(b)
		channel := storage.Grant{Connector: "slack", Subject: "C1", At: 7}
		ok(b.Grant(b.ctx, channel))(b)
		b.equal("grants", ok(b.Grants(b.ctx))(b), []storage.Grant{g, channel})
		b.noError(b.Revoke(b.ctx, "telegram", "U1"))
		b.is(b.Revoke(b.ctx, "telegram", "U1"), storage.ErrNotFound)
		b.again()
		b.equal("after a revocation", ok(b.Grants(b.ctx))(b), []storage.Grant{channel})
	}},
	{"pairings", func(b *bed) {
		p := storage.Pairing{Code: "AAAA1111", Connector: "telegram", ChannelID: "C1", UserID: "U1", Name: "Ann", At: 5, Expires: 9}
		b.equal("reply", outIDs(ok(b.SavePairing(b.ctx, p, reply("o1")))(b)), []string{"o1"})
		q := storage.Pairing{Code: "BBBB2222", Connector: "telegram", ChannelID: "C2", UserID: "U2", At: 6, Expires: 10}
		ok(b.SavePairing(b.ctx, q))(b)
		p.Code, p.At = "CCCC3333", 7
		b.equal("a known reply", len(ok(b.SavePairing(b.ctx, p, reply("o1")))(b)), 0)
		b.equal("one for each person, oldest first", ok(b.Pairings(b.ctx))(b), []storage.Pairing{q, p})
		stolen := storage.Pairing{Code: q.Code, Connector: "slack", UserID: "U3"}
		if _, err := b.SavePairing(b.ctx, stolen, reply("o2")); err == nil {
			b.Fatal("two people got one code")
		}
		b.equal("no reply to a refused one", len(ok(b.Unsent(b.ctx, dest, 0, 9))(b)), 1)
		ok(b.Grant(b.ctx, storage.Grant{Connector: "telegram", Subject: "U1"}))(b)
		b.equal("granted", ok(b.Pairings(b.ctx))(b), []storage.Pairing{q})
		b.noError(b.DropPairing(b.ctx, q.Code, storage.Checkpoint{Key: "note", Value: "dropped"}))
		b.is(b.DropPairing(b.ctx, q.Code, storage.Checkpoint{Key: "note", Value: "again"}), storage.ErrNotFound)
		b.equal("note", ok(b.Checkpoint(b.ctx, "note"))(b), "dropped")
		b.equal("none", len(ok(b.Pairings(b.ctx))(b)), 0)
	}},
	{"a grant with its notice", func(b *bed) {
		g := storage.Grant{Connector: "telegram", Subject: "U1", At: 5}
		b.equal("notice", outIDs(ok(b.Grant(b.ctx, g, reply("n1")))(b)), []string{"n1"})
		b.equal("a known notice", len(ok(b.Grant(b.ctx, g, reply("n1")))(b)), 0)
	}},
	{"a grant by an invitation", func(b *bed) {
		p := storage.Pairing{Code: "AAAA1111", Connector: "telegram", At: 5, Expires: 9}
		ok(b.SavePairing(b.ctx, p))(b)
		ok(b.SavePairing(b.ctx, storage.Pairing{Code: "BBBB2222", Connector: "telegram", ChannelID: "C1", UserID: "U1", At: 6, Expires: 9}))(b)
		for _, g := range []storage.Grant{
			{Connector: "telegram", Subject: "U2", Invitation: "CCCC3333"},
			{Connector: "slack", Subject: "U2", Invitation: p.Code},
			{Connector: "telegram", Subject: "U2", Invitation: "BBBB2222"}, // a request
		} {
			_, err := b.Grant(b.ctx, g, reply("n1"))
			b.is(err, storage.ErrNotFound)
		}
		if _, err := b.Grant(b.ctx, storage.Grant{Connector: "telegram", Invitation: p.Code}, reply("n1")); err == nil {
			b.Fatal("access of no user")
		}
		b.equal("nothing of a refused one", fmt.Sprint(len(ok(b.Grants(b.ctx))(b)), len(ok(b.Pairings(b.ctx))(b)), len(ok(b.Unsent(b.ctx, dest, 0, 9))(b))), "0 2 0")
		g := storage.Grant{Connector: "telegram", Subject: "U2", At: 7}
		by := g
		by.Invitation = p.Code
		b.equal("notice", outIDs(ok(b.Grant(b.ctx, by, reply("n1")))(b)), []string{"n1"})
		by.Subject = "U3"
		_, err := b.Grant(b.ctx, by, reply("n2"))
		b.is(err, storage.ErrNotFound)
		b.again()
		b.equal("granted once", ok(b.Grants(b.ctx))(b), []storage.Grant{g})
		b.equal("the request stays", len(ok(b.Pairings(b.ctx))(b)), 1)
	}},
	{"a grant with a message", func(b *bed) {
		g := storage.Grant{Connector: "telegram", Subject: "U1", At: 5}
		p := storage.Posting{To: b.agent, Message: userMessage("c1"), Skip: "command", Replies: []claybot.Outgoing{reply("n1")}, Grant: &g}
		b.equal("added", ok(b.Post(b.ctx, p))(b).Added, true)
		b.equal("granted", ok(b.Grants(b.ctx))(b), []storage.Grant{g})
		b.noError(b.Revoke(b.ctx, "telegram", "U1"))
		b.again()
		b.equal("a duplicate", ok(b.Post(b.ctx, p))(b).Added, false)
		b.equal("stays revoked", len(ok(b.Grants(b.ctx))(b)), 0)
	}},
	{"marks", func(b *bed) {
		b.equal("missing", ok(b.Checkpoint(b.ctx, "telegram/poll"))(b), "")
		b.noError(b.SetCheckpoint(b.ctx, "telegram/poll", "1"))
		b.noError(b.SetCheckpoint(b.ctx, "telegram/poll", "2"))
		b.noError(b.SetCheckpoint(b.ctx, "slack/seen", ""))
		b.again()
		b.equal("kept", ok(b.Checkpoint(b.ctx, "telegram/poll"))(b), "2")
	}},
	{"a number that only grows", func(b *bed) {
		for _, x := range []struct {
			to   int64
			want bool
		}{{9, true}, {10, true}, {9, false}, {10, true}, {-1, false}, {11, true}} {
			got := ok(b.AdvanceCheckpoint(b.ctx, "newest", x.to, map[string]string{"with": fmt.Sprint(x.to, x.want), "dead route/a": "x", "none": ""}))(b)
			b.equal(fmt.Sprint("to ", x.to), got, x.want)
			b.again()
		}
		b.equal("the number", ok(b.Checkpoint(b.ctx, "newest"))(b), "11")
		b.equal("stored with it", ok(b.Checkpoint(b.ctx, "with"))(b), "11 true")
		ok(b.AdvanceCheckpoint(b.ctx, "newest", 12, map[string]string{"with": ""}))(b)
		b.equal("removed with it", ok(b.Checkpoint(b.ctx, "with"))(b), "")
	}},
	{"figures", func(b *bed) {
		b.equal("empty", b.figures(), storage.Stats{Agents: 1, Runs: map[claybot.RunState]int{}, Outbox: map[claybot.SendState]int{}})
		lease, _ := b.begin("r1")
		b.post("m2", instant)
		b.post("m2", instant)
		b.succeed(lease, "r1", reply("o1"))
		want := storage.Stats{
			Agents: 1, Waiting: 1, OldestWaiting: claybot.Now(), Runs: map[claybot.RunState]int{claybot.RunSucceeded: 1},
			Outbox: map[claybot.SendState]int{claybot.SendWaiting: 1}, Duplicates: 1,
		}
		b.equal("after a run", b.figures(), want)
		b.again()
		want.Duplicates = 0 // counted since the process started
		b.equal("after a restart", b.figures(), want)
	}},
}
