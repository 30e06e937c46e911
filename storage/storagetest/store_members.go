package storagetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// nodeTests are about nodes and claims. A store that one process uses alone has
// one node and gives every claim; what is said of others does not concern it.
var nodeTests = []storeTest{
	{"a store that is used alone", func(b *bed) {
		if !b.Alone() {
			return
		}
		self := storage.Member{ID: "a", Name: "host", Version: "1"}
		for range 2 {
			alive := ok(b.RenewMember(b.ctx, self, ttl))(b)
			b.equal("alive", nodeIDs(alive), []string{"a"})
		}
		for range 2 {
			c := ok(b.Claim(b.ctx, "a", storage.DestClaim(dest)))(b)
			b.noError(b.Yield(b.ctx, c))
		}
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		b.noError(b.Attempt(b.ctx, storage.Claim{}, "o1"))
		b.equal("claims change nothing", b.unsent().State, claybot.SendAttempted)
		ok(b.Claim(b.ctx, "a", storage.DestClaim(dest)))(b)
		b.equal("claims change nothing", b.unsent().State, claybot.SendAttempted)
	}},
	{"renewals", shared(func(b *bed) {
		a := storage.Member{
			ID: "a", Name: "host a", Addr: "a:8080", Version: "1", Started: claybot.Now(),
			Working: 3, MaxRuns: 10, State: storage.MemberLive,
		}
		b.equal("alone", nodeIDs(b.renewMember(a)), []string{"a"})
		time.Sleep(ttl / 2)
		b.equal("both", nodeIDs(b.renewMember(storage.Member{ID: "b", Name: "host b", Version: "2", Started: claybot.Now()})), []string{"a", "b"})
		a.Working = 4
		got := b.renewMember(a)[0]
		b.equal("as told", []any{got.Name, got.Addr, got.Version, got.Started, got.Working, got.MaxRuns, got.State},
			[]any{a.Name, a.Addr, a.Version, a.Started, 4, 10, storage.MemberLive})
		b.equal("by the clock of the store", []any{got.Seen, got.Until}, []any{claybot.Now(), claybot.At(time.Now().Add(ttl))})
		time.Sleep(ttl - time.Second)
		b.equal("b is about to run out", nodeIDs(b.renewMember(a)), []string{"a", "b"})
		time.Sleep(time.Second)
		b.equal("b has run out", nodeIDs(b.renewMember(a)), []string{"a"})
		_, err := b.RenewMember(b.ctx, storage.Member{ID: "b", Name: "host b"}, ttl)
		b.is(err, storage.ErrLeaseLost)
		_, err = b.RenewMember(b.ctx, storage.Member{ID: "b", Name: "host b"}, ttl)
		b.is(err, storage.ErrLeaseLost)
		b.equal("nor does it come back", nodeIDs(b.renewMember(a)), []string{"a"})
	})},
	{"leaving", shared(func(b *bed) {
		b.renewMember(storage.Member{ID: "a", Name: "a"})
		b.renewMember(storage.Member{ID: "b", Name: "b"})
		c := ok(b.Claim(b.ctx, "a", "x"))(b)
		for range 2 {
			b.noError(b.Leave(b.ctx, "a"))
		}
		b.noError(b.Leave(b.ctx, "never there"))
		_, err := b.RenewMember(b.ctx, storage.Member{ID: "a", Name: "a"}, ttl)
		b.is(err, storage.ErrLeaseLost)
		b.equal("its claims are free", ok(b.Holder(b.ctx, "x"))(b), "")
		b.equal("at once", ok(b.Claim(b.ctx, "b", "x"))(b).Token > c.Token, true)
		_, err = b.Claim(b.ctx, "a", "y")
		b.is(err, storage.ErrLeaseLost)
	})},
	{"ended from outside", shared(func(b *bed) {
		b.renewMember(storage.Member{ID: "a", Name: "host a"})
		b.renewMember(storage.Member{ID: "b", Name: "host b"})
		c := ok(b.Claim(b.ctx, "a", "x"))(b)
		b.post("m1", instant)
		held, _, err := b.Store.Acquire(b.ctx, "a", ttl, 1, 1)
		b.noError(err)
		old := held[0].Lease
		ok(b.Begin(b.ctx, old, "r1", ids(held[0].Waiting), storage.Beginning{}))(b)
		b.noError(b.EndMember(b.ctx, "never there", "host a"))
		b.noError(b.EndMember(b.ctx, "a", "host b")) // another name
		b.equal("still there", ok(b.Holder(b.ctx, "x"))(b), "a")
		for range 2 {
			b.noError(b.EndMember(b.ctx, "a", "host a"))
		}
		_, err = b.RenewMember(b.ctx, storage.Member{ID: "a", Name: "host a"}, ttl)
		b.is(err, storage.ErrLeaseLost)
		b.equal("its claims are free", ok(b.Claim(b.ctx, "b", "x"))(b).Token > c.Token, true)
		held, _, err = b.Store.Acquire(b.ctx, "b", ttl, 1, 1)
		b.noError(err)
		b.equal("its agents are due", []any{len(held), held[0].Run.ID}, []any{1, claybot.RunID("r1")})
		_, err = b.Begin(b.ctx, old, "r1", nil, storage.Beginning{})
		b.is(err, storage.ErrLeaseLost)
	})},
	{"the list", shared(func(b *bed) {
		b.renewMember(storage.Member{ID: "lost", Name: "1", Started: claybot.Now()})
		time.Sleep(ttl)
		b.renewMember(storage.Member{ID: "gone", Name: "2", Started: claybot.Now()})
		b.noError(b.Leave(b.ctx, "gone"))
		time.Sleep(time.Second)
		b.renewMember(storage.Member{ID: "drains", Name: "3", Started: claybot.Now(), State: storage.MemberDraining})
		time.Sleep(time.Second)
		b.renewMember(storage.Member{ID: "live", Name: "4", Started: claybot.Now()})
		ok(b.Claim(b.ctx, "live", "x"))(b)
		ok(b.Claim(b.ctx, "live", "y"))(b)
		for i := range 3 {
			ok(b.Claim(b.ctx, "live", storage.DestClaim(fmt.Sprint("chat/", i))))(b)
		}
		var got []string
		for _, n := range ok(b.Members(b.ctx))(b) {
			got = append(got, fmt.Sprint(n.ID, " ", n.State, " ", n.Claims, " ", n.Dests))
		}
		b.equal("the newest first", got, []string{"live live [x y] 3", "drains draining [] 0", "gone gone [] 0", "lost lost [] 0"})
		time.Sleep(25 * time.Hour)
		b.equal("after a day", len(ok(b.Members(b.ctx))(b)), 0)
	})},
	{"claims", shared(func(b *bed) {
		b.renewMember(storage.Member{ID: "a", Name: "a"})
		b.renewMember(storage.Member{ID: "b", Name: "b"})
		b.equal("without a holder", ok(b.Holder(b.ctx, "x"))(b), "")
		_, err := b.Claim(b.ctx, "", "x")
		b.is(err, storage.ErrLeaseLost)
		c := ok(b.Claim(b.ctx, "a", "x"))(b)
		b.equal("given", []any{c.Name, c.Member}, []any{"x", "a"})
		again := ok(b.Claim(b.ctx, "a", "x"))(b)
		b.equal("once more, by the same", again.Token > c.Token, true)
		b.noError(b.Yield(b.ctx, c)) // of the earlier claim: it ends nothing
		c = again
		b.equal("holder", ok(b.Holder(b.ctx, "x"))(b), "a")
		_, err = b.Claim(b.ctx, "b", "x")
		b.is(err, storage.ErrHeld)
		other := ok(b.Claim(b.ctx, "b", "X"))(b)
		b.equal("another name", []any{other.Name, other.Member}, []any{"X", "b"})
		old := c
		b.noError(b.Yield(b.ctx, c))
		b.noError(b.Yield(b.ctx, c))
		c = ok(b.Claim(b.ctx, "b", "x"))(b)
		b.equal("a larger token", c.Token > old.Token, true)
		b.noError(b.Yield(b.ctx, old)) // which is lost
		b.equal("holder", ok(b.Holder(b.ctx, "x"))(b), "b")
		_, err = b.Claim(b.ctx, "stranger", "y")
		b.is(err, storage.ErrLeaseLost)
	})},
	{"claims end with the lease", shared(func(b *bed) {
		b.renewMember(storage.Member{ID: "a", Name: "a"})
		c := ok(b.Claim(b.ctx, "a", "x"))(b)
		time.Sleep(ttl / 2)
		b.renewMember(storage.Member{ID: "b", Name: "b"})
		time.Sleep(ttl/2 - ms)
		_, err := b.Claim(b.ctx, "b", "x")
		b.is(err, storage.ErrHeld)
		time.Sleep(ms)
		b.equal("without a holder", ok(b.Holder(b.ctx, "x"))(b), "")
		b.equal("the next one's", ok(b.Claim(b.ctx, "b", "x"))(b).Token > c.Token, true)
	})},
	{"one of many gets a claim", shared(func(b *bed) {
		const many = 8
		for i := range many {
			b.renewMember(storage.Member{ID: fmt.Sprint("n", i), Name: "n"})
		}
		for round := range 5 {
			var wg sync.WaitGroup
			errs := make([]error, many)
			for i := range many {
				wg.Go(func() { _, errs[i] = b.Claim(b.ctx, fmt.Sprint("n", i), fmt.Sprint("x", round)) })
			}
			wg.Wait()
			got := 0
			for _, err := range errs {
				if err == nil {
					got++
				} else {
					b.is(err, storage.ErrHeld)
				}
			}
			b.equal("claims given", got, 1)
		}
	})},
	{"sends are fenced", shared(func(b *bed) {
		b.renewMember(storage.Member{ID: "a", Name: "a"})
		b.renewMember(storage.Member{ID: "b", Name: "b"})
		elsewhere := reply("x1")
		elsewhere.Route.ChannelID = "C2"
		ok(b.Enqueue(b.ctx, reply("o1"), reply("o2"), elsewhere))(b)
		old := ok(b.Claim(b.ctx, "a", storage.DestClaim(dest)))(b)
		far := ok(b.Claim(b.ctx, "b", storage.DestClaim(elsewhere.Route.Dest())))(b)
		b.noError(b.Attempt(b.ctx, old, "o1"))
		b.noError(b.Attempt(b.ctx, far, "x1"))
		b.is(b.Attempt(b.ctx, far, "o2"), storage.ErrLeaseLost) // the claim of another destination
		b.noError(b.Yield(b.ctx, old))
		b.equal("not yet", b.states("o1", "o2", "x1"), "attempted waiting attempted")
		b.is(b.Resolve(b.ctx, old, "o1", storage.Resolution{State: claybot.SendSent, Receipt: "1"}), storage.ErrLeaseLost)
		c := ok(b.Claim(b.ctx, "b", storage.DestClaim(dest)))(b)
		b.equal("what was under way there", b.states("o1", "o2", "x1"), "ambiguous waiting attempted")
		for _, s := range []claybot.SendState{claybot.SendSent, claybot.SendFailed, claybot.SendWaiting, claybot.SendAmbiguous} {
			b.is(b.Resolve(b.ctx, old, "o1", storage.Resolution{State: s}), storage.ErrLeaseLost)
		}
		b.is(b.Attempt(b.ctx, old, "o2"), storage.ErrLeaseLost)
		b.equal("nothing has changed", b.states("o1", "o2", "x1"), "ambiguous waiting attempted")
		b.noError(b.Resolve(b.ctx, c, "o1", storage.Resolution{State: claybot.SendSent, Receipt: "1"}))
		b.noError(b.Attempt(b.ctx, c, "o2"))
		b.equal("the same claim again", ok(b.Claim(b.ctx, "b", storage.DestClaim(dest)))(b).Token > c.Token, true)
		b.equal("is not another holder", b.states("o1", "o2", "x1"), "sent attempted attempted")
	})},
	{"no attempt without a lease", shared(func(b *bed) {
		b.renewMember(storage.Member{ID: "a", Name: "a"})
		ok(b.Enqueue(b.ctx, reply("o1")))(b)
		c := ok(b.Claim(b.ctx, "a", storage.DestClaim(dest)))(b)
		time.Sleep(ttl)
		b.is(b.Attempt(b.ctx, c, "o1"), storage.ErrLeaseLost)
		b.equal("nothing has changed", b.states("o1"), "waiting")
	})},
	{"claims of nodes that are long gone", shared(func(b *bed) {
		for _, id := range []string{"a", "b"} {
			b.renewMember(storage.Member{ID: id, Name: id})
			ok(b.Claim(b.ctx, id, "x"+id))(b)
		}
		time.Sleep(48 * time.Hour)
		b.noError(b.Prune(b.ctx, time.Now(), Retention))
		b.renewMember(storage.Member{ID: "c", Name: "c"})
		ok(b.Claim(b.ctx, "c", "xa"))(b)
		b.equal("nodes", nodeIDs(ok(b.Members(b.ctx))(b)), []string{"c"})
	})},
}

// shared skips a test for a store that one process uses alone.
func shared(run func(b *bed)) func(b *bed) {
	return func(b *bed) {
		if !b.Alone() {
			run(b)
		}
	}
}

func (b *bed) renewMember(n storage.Member) []storage.Member {
	b.Helper()
	return ok(b.RenewMember(b.ctx, n, ttl))(b)
}

func nodeIDs(list []storage.Member) (ids []string) {
	for _, n := range list {
		ids = append(ids, n.ID)
	}
	return ids
}

// states are those of outgoing messages.
func (b *bed) states(ids ...string) (all string) {
	b.Helper()
	for i, id := range ids {
		if i > 0 {
			all += " "
		}
		all += string(ok(b.OutgoingByID(b.ctx, id))(b).State)
	}
	return all
}
