package agentsystem_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// newLimiter makes a limiter with one budget of all agents, in tokens.
func (r *rig) newLimiter(limit int64, hard bool) *budgets.Limiter {
	return agentsystem.NewLimiter(r.system, budgets.Config{Store: r.db, Rules: func() []budgets.Rule {
		return []budgets.Rule{{Per: budgets.PerAll, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: limit, Hard: hard}}
	}})
}

// A warning that reached no person is told as soon as it can reach one, once.
func TestWarningIsToldLater(t *testing.T) {
	bubble(t, func(r *rig) {
		r.start()
		p := r.newLimiter(1000, false)
		spend := func(tokens int64) {
			h, err := p.Reserve(r.Context(), llm.Charge{Tokens: tokens})
			if err != nil {
				r.Fatal(err)
			}
			if err := h.Settle(r.Context(), claybot.Usage{Input: tokens}); err != nil {
				r.Fatal(err)
			}
			synctest.Wait()
		}
		spend(900)
		r.post(ann, msg("hi", "hi"))
		synctest.Wait()
		for range 3 {
			spend(1)
		}
		if got := strings.Count(strings.Join(r.chat.seen("dm-ann"), "\n"), "The budget of all agents"); got != 1 {
			r.Errorf("told %d times: %q", got, r.chat.seen("dm-ann"))
		}
	})
}

// The operator reads in the terminal about their own budget as theirs, without buttons
// that are not there, and the log does not say that they could not be asked.
func TestOperatorsOwnBudget(t *testing.T) {
	const notAsked = "approver has no chat with claybot"
	banking(t, talks(50), func(b *bank) {
		var logs lockedText
		terminal := new(chat)
		b.operators, b.logs = nil, &logs
		b.also = []connectors.Connector{&line{name: "terminal", chat: terminal, fuse: newFuse(-1)}}
		b.rules = []budgets.Rule{tight(budgets.EveryMonth)}
		b.start()
		b.post(claybot.User("terminal", "main", "operator"), msg("t1", "hello"))
		synctest.Wait()
		seen := terminal.seen("main")
		if len(seen) != 1 || !strings.HasPrefix(seen[0], "**Extend your budget for this month by $0.0") ||
			!strings.Contains(seen[0], "Your run waits for it.") || !strings.Contains(seen[0], "*Send `/approve ") || strings.Contains(seen[0], "button") {
			b.Errorf("the operator reads %q", seen)
		}
		if strings.Contains(logs.String(), notAsked) {
			b.Errorf("logged %s", logs.String())
		}
		time.Sleep(time.Second) // the order of questions
		b.say("hello")
		synctest.Wait()
		if got := b.chat.seen("dm-ann"); len(got) != 1 || !strings.Contains(got[0], "*Press a button, or send `/approve ") {
			b.Errorf("people read %q", got)
		}
		b.operators = []string{"chat/bob"} // who has not written
		b.answer(b.open()[1], "approve", claybot.ViaWeb)
		if strings.Count(logs.String(), notAsked) != 1 || !strings.Contains(logs.String(), "approver=chat/bob") {
			b.Errorf("logged %s", logs.String())
		}
	})
}

// A lockedText takes what several goroutines log.
type lockedText struct {
	mu sync.Mutex
	strings.Builder
}

func (t *lockedText) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Builder.Write(p)
}

// A limit that the configuration changes is shown at once, and a question that names
// the old one is asked anew, once.
func TestLoweredLimit(t *testing.T) {
	banking(t, talks(50), func(b *bank) {
		b.start()
		b.rules = []budgets.Rule{
			{Per: budgets.PerOwner, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 500_000, Hard: true},
			{Per: budgets.PerOwner, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 900, Match: "chat"},
		}
		b.say("first")
		synctest.Wait()
		spent := b.budget("owner/").Spent
		shown := func(hard, soft int64) {
			b.Helper()
			list, err := b.paying().Budgets(b.Context(), 10)
			if err != nil || len(list) != 2 {
				b.Fatalf("%+v, %v", list, err)
			}
			for _, x := range list {
				if want := map[bool]int64{true: hard, false: soft}[x.Hard]; x.Limit != want {
					b.Errorf("%s: limit %d, want %d", x.Key, x.Limit, want)
				}
			}
		}
		shown(500_000, 900)
		b.rules[0].Limit, b.rules[1].Limit = spent+100, 800
		shown(spent+100, 800)
		b.say("second")
		synctest.Wait()
		first := b.open()
		if len(first) != 1 || !strings.Contains(first[0].Text, llm.Standing(true, spent, spent+100)) {
			b.Fatalf("open are %+v", first)
		}
		b.rules[0].Limit = spent + 50
		for range 2 { // the second look changes nothing
			if err := b.paying().Recheck(b.Context()); err != nil {
				b.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if open := b.open(); len(open) != 1 || open[0].ID == first[0].ID || !strings.Contains(open[0].Text, llm.Standing(true, spent, spent+50)) {
				b.Fatalf("open are %+v", open)
			}
		}
		b.rules[0].Fault = "budgets[0].tokens is not a number" // it frees nothing, and stops no other
		if err := b.paying().Recheck(b.Context()); err != nil || len(b.open()) != 1 {
			b.Errorf("open are %+v, %v", b.open(), err)
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait() // the look at the rules that was due by then
		b.rules[0].Fault = ""
		shown(500_000, 900) // of a day that is over: what held then
	})
}
