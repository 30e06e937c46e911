package sqlite

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func openBench(b *testing.B, agents int) (*DB, []claybot.AgentID) {
	b.Helper()
	db, err := Open(b.Context(), filepath.Join(b.TempDir(), "claybot.db"), Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	ids := make([]claybot.AgentID, agents)
	all := make([]claybot.Agent, agents)
	for i := range all {
		ids[i] = claybot.NewID()
		all[i] = claybot.Agent{ID: ids[i], Descriptor: claybot.User("telegram", fmt.Sprint(i), fmt.Sprint(i))}
	}
	if err := db.IndexAgents(b.Context(), all...); err != nil {
		b.Fatal(err)
	}
	return db, ids
}

func benchMessage(n int64) claybot.AgentMessage {
	id := fmt.Sprintf("telegram/1000/%09d", n)
	return claybot.AgentMessage{
		ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: "what is the weather like today?",
		From: claybot.Sender{UserID: "12345678", Name: "Ann"}, At: claybot.Now(), Keys: []string{"telegram/1000/12345678/" + id},
	}
}

// BenchmarkPost is 64 connectors posting to 200 agents.
func BenchmarkPost(b *testing.B) {
	db, ids := openBench(b, 200)
	var n atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1)
			if _, err := db.Post(b.Context(), storage.Posting{To: ids[int(i)%len(ids)], Message: benchMessage(i)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "posts/s")
}

// BenchmarkMessage is the whole life of a message with one reply, 64 at a time.
func BenchmarkMessage(b *testing.B) {
	db, ids := openBench(b, 64)
	var n, worker atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		agent := ids[int(worker.Add(1))%len(ids)]
		for pb.Next() {
			i := n.Add(1)
			if err := life(b, db, agent, i); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

func life(b *testing.B, db *DB, agent claybot.AgentID, i int64) error {
	ctx, m, run := b.Context(), benchMessage(i), claybot.RunID(fmt.Sprintf("run%021d", i))
	if _, err := db.Post(ctx, storage.Posting{To: agent, Message: m}); err != nil {
		return err
	}
	// Every worker is a node of its own here, and may be given any agent.
	acquired, _, err := db.Acquire(ctx, string(run), time.Hour, 1, 100)
	if err != nil || len(acquired) == 0 {
		return err // another worker holds the agent: the message goes with that agent's next run
	}
	h := acquired[0]
	batch := make([]claybot.MessageID, 0, len(h.Waiting))
	for _, m := range h.Waiting {
		batch = append(batch, m.ID)
	}
	if _, err := db.Begin(ctx, h.Lease, run, batch, storage.Beginning{}); err != nil {
		return err
	}
	reply := claybot.Outgoing{
		ID: string(run) + ".1", Kind: claybot.OutgoingAnswer, Run: run, Agent: agent,
		Route: claybot.Route{Connector: "telegram", ChannelID: "12345678"}, Text: "Sunny, 21 degrees.", Part: 1, Parts: 1, At: claybot.Now(),
	}
	_, err = db.Finish(ctx, h.Lease, run, storage.Outcome{
		State: claybot.RunSucceeded, Output: reply.Text,
		Events: []claybot.Event{{Type: claybot.EventAssistantMessage}, {Type: claybot.EventRunFinished}},
		Usage:  claybot.Usage{Input: 100, Output: 10, LLMCalls: 1}, Replies: []claybot.Outgoing{reply},
		End: storage.Checkpoint{Key: "history/" + string(agent), Value: fmt.Sprintf(`{"seq":1,"offset":0,"crc":"00000000","size":%d}`, i)},
	})
	if err != nil {
		return err
	}
	claim, err := db.Claim(ctx, string(run), storage.DestClaim(reply.Route.Dest()))
	if err != nil {
		return err
	}
	if err := db.Attempt(ctx, claim, reply.ID); err != nil {
		return err
	}
	return db.Resolve(ctx, claim, reply.ID, storage.Resolution{State: claybot.SendSent, Receipt: "77"})
}

// BenchmarkOpen opens and closes a file with 10,000 agents.
func BenchmarkOpen(b *testing.B) {
	db, _ := openBench(b, 10_000)
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		again, err := Open(b.Context(), db.path, Config{})
		if err != nil {
			b.Fatal(err)
		}
		if err := again.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIndexedAgents lists 10,000 agents.
func BenchmarkIndexedAgents(b *testing.B) {
	db, _ := openBench(b, 10_000)
	b.ResetTimer()
	for range b.N {
		for _, err := range db.IndexedAgents(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkChannelAgents lists the agents of one channel and of one owner of 10,000.
func BenchmarkChannelAgents(b *testing.B) {
	db, ids := openBench(b, 10_000)
	d, err := db.IndexedDescriptor(b.Context(), ids[0])
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := db.ChannelAgents(b.Context(), d.Connector, d.ChannelID); err != nil {
			b.Fatal(err)
		}
		if _, err := db.OwnedAgents(b.Context(), d.OwnerID()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkIdleAcquire asks what is due while 10,000 agents wait for later and
// 200 are held.
func BenchmarkIdleAcquire(b *testing.B) {
	db, ids := openBench(b, 10_000)
	for i, id := range ids {
		p := storage.Posting{To: id, Message: benchMessage(int64(i))}
		if i >= 200 {
			p.Wait = storage.Wait{Quiet: time.Hour, Max: time.Hour}
		}
		if _, err := db.Post(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
	acquired, _, err := db.Acquire(b.Context(), "n", time.Minute, 1000, 10)
	if err != nil || len(acquired) != 200 {
		b.Fatal(len(acquired), err)
	}
	b.ResetTimer()
	for range b.N {
		if _, _, err := db.Acquire(b.Context(), "n", time.Minute, 100, 10); err != nil {
			b.Fatal(err)
		}
	}
}
