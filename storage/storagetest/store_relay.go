package storagetest

import (
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func (b *bed) backlog(sink string, want ...storage.Unpublished) {
	b.Helper()
	b.equal("backlog of "+sink, ok(b.Backlog(b.ctx, sink, 100))(b), want)
}

func (b *bed) published(sink string, run claybot.RunID, seq int64) {
	b.Helper()
	b.noError(b.Published(b.ctx, sink, run, seq))
}

func (b *bed) happens(l storage.Lease, id claybot.RunID, n int) {
	b.Helper()
	b.noError(b.Append(b.ctx, l, id, false, make([]claybot.Event, n)...))
}

var relayTests = []storeTest{
	{"a sink hears of what commits after it was named", func(b *bed) {
		l, _ := b.begin("r1")
		b.backlog("web")
		b.noError(b.Sinks(b.ctx, true, "web", "log"))
		b.backlog("web")
		time.Sleep(ms)
		at := claybot.Now()
		b.happens(l, "r1", 2)
		want := storage.Unpublished{Run: "r1", After: 1, Since: at}
		b.backlog("web", want)
		b.backlog("log", want)
		b.backlog("nobody")
		b.again()
		b.noError(b.Sinks(b.ctx, true, "log", "web"))
		b.backlog("web", want)
		b.published("web", "r1", 3)
		b.backlog("web")
		b.backlog("log", want) // each sink by itself
	}},
	{"a sink is told in order and never back", func(b *bed) {
		b.noError(b.Sinks(b.ctx, true, "web"))
		first := claybot.Now()
		l, _ := b.begin("r1")
		for range 3 {
			time.Sleep(ms)
			b.happens(l, "r1", 1)
		}
		b.backlog("web", storage.Unpublished{Run: "r1", Since: first})
		b.published("web", "r1", 2)
		want := storage.Unpublished{Run: "r1", After: 2, Since: first + 2}
		b.backlog("web", want)
		for _, seq := range []int64{2, 1, 0, -5} {
			b.published("web", "r1", seq)
			b.backlog("web", want)
		}
		b.published("nobody", "r1", 9)
		b.published("web", "unknown", 9)
		b.backlog("web", want)
		b.published("web", "r1", 99) // beyond the end
		b.backlog("web")
		time.Sleep(ms)
		b.happens(l, "r1", 1)
		b.backlog("web", storage.Unpublished{Run: "r1", After: 4, Since: first + 4})
		b.succeed(l, "r1")
		b.backlog("web", storage.Unpublished{Run: "r1", After: 4, Since: first + 4})
		b.published("web", "r1", 5)
		b.backlog("web", storage.Unpublished{Run: "r1", After: 5, Since: first + 4})
		b.again()
		b.published("web", "r1", 6)
		b.backlog("web")
		b.published("web", "r1", 6)
		b.backlog("web")
	}},
	{"the longest waiting first", func(b *bed) {
		b.noError(b.Sinks(b.ctx, true, "web"))
		var leases []storage.Lease
		var runs []claybot.RunID
		for _, id := range []claybot.RunID{"r3", "r1", "r2"} {
			b.agent = b.newAgent("C-" + string(id))
			l, _ := b.begin(id)
			leases, runs = append(leases, l), append(runs, id)
			time.Sleep(ms)
		}
		b.published("web", "r3", 1)
		b.happens(leases[0], "r3", 1) // its oldest unknown event is the newest of all
		list := ok(b.Backlog(b.ctx, "web", 2))(b)
		b.equal("runs", []any{len(list), list[0].Run, list[1].Run}, []any{2, runs[1], runs[2]})
		b.equal("limit", len(ok(b.Backlog(b.ctx, "web", 1))(b)), 1)
		b.equal("all", len(ok(b.Backlog(b.ctx, "web", 10))(b)), 3)
	}},
	{"forgotten sinks", func(b *bed) {
		b.noError(b.Sinks(b.ctx, true, "web", "log"))
		l, _ := b.begin("r1")
		b.noError(b.Sinks(b.ctx, true, "log", "log"))
		b.backlog("web")
		b.equal("the other", len(ok(b.Backlog(b.ctx, "log", 9))(b)), 1)
		b.happens(l, "r1", 1)
		b.backlog("web")
		b.noError(b.Sinks(b.ctx, true, "web"))
		b.backlog("log")
		b.happens(l, "r1", 1)
		b.equal("from then on", ok(b.Backlog(b.ctx, "web", 9))(b)[0].After, 2)
		b.noError(b.Sinks(b.ctx, true))
		b.backlog("web")
		b.happens(l, "r1", 1)
		b.backlog("web")
		if b.Sinks(b.ctx, true, "web", "") == nil {
			b.Fatal("a sink without a name")
		}
	}},
	{"a sink whose settings are not known", func(b *bed) {
		b.noError(b.Sinks(b.ctx, true, "web", "log"))
		l, _ := b.begin("r1")
		b.noError(b.Sinks(b.ctx, false, "log", "new"))
		b.happens(l, "r1", 1)
		b.again()
		b.noError(b.Sinks(b.ctx, true, "web", "log", "new"))
		b.equal("since the beginning", ok(b.Backlog(b.ctx, "web", 9))(b)[0].After, 0)
		b.equal("since it was named", ok(b.Backlog(b.ctx, "new", 9))(b)[0].After, 1)
	}},
	{"events of the store's own, and of ids without a run", func(b *bed) {
		b.noError(b.Sinks(b.ctx, true, "web"))
		at := claybot.Now()
		b.deliver(storage.Posting{To: b.agent, Message: reserving("m1", "r1"), Skip: "empty"})
		b.backlog("web", storage.Unpublished{Run: "r1", Since: at})
		b.published("web", "r1", 1)
		b.backlog("web")
	}},
	{"what a sink was not told of is not removed for 30 days", func(b *bed) {
		b.noError(b.Sinks(b.ctx, true, "web", "log"))
		start := time.Now()
		b.runs("told", success())
		b.runs("untold", success())
		b.begin("open")
		for _, sink := range []string{"web", "log"} {
			b.published(sink, "told", 2)
		}
		b.published("web", "untold", 2)
		day := func(n int) {
			b.Helper()
			b.noError(b.Prune(b.ctx, start.Add(time.Duration(n)*24*time.Hour), Retention))
		}
		day(8)
		b.equal("told", len(b.events("told", 0)), 0)
		b.equal("untold", len(b.events("untold", 0)), 2)
		day(29)
		b.equal("untold", len(b.events("untold", 0)), 2)
		b.equal("backlog", len(ok(b.Backlog(b.ctx, "log", 9))(b)), 2)
		day(31)
		b.equal("given up", len(b.events("untold", 0)), 0)
		b.equal("of runs that have not ended", len(b.events("open", 0)), 1)
		b.equal("backlog", []any{len(ok(b.Backlog(b.ctx, "log", 9))(b)), ok(b.Backlog(b.ctx, "log", 9))(b)[0].Run}, []any{1, "open"})
	}},
}
