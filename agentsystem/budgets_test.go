package agentsystem_test

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/messaging"
)

const (
	meteredModel = "metered-1"
	perMillion   = 20 // US dollars, for input and output alike
)

var meteredPrices = llm.Prices{meteredModel: {Input: perMillion, CachedInput: perMillion, Output: perMillion}}

// A bank is a rig whose agents ask a server that counts, and pay for it.
type bank struct {
	*rig
	server *openaitest.Server
	rules  []budgets.Rule
	prices llm.Prices
	// helpers gives agents the tools to start others; their descriptions are most
	// of a request.
	helpers bool
	// operators decide about budgets; nil: those at the page and the command line.
	operators []string

	mu      sync.Mutex
	limiter *budgets.Limiter
	of      *agentsystem.AgentSystem
}

// banking runs a test with a bank that is not started.
func banking(t *testing.T, reply func(openaitest.Request) openaitest.Reply, test func(b *bank)) {
	t.Helper()
	bubble(t, func(r *rig) {
		b := &bank{rig: r, operators: []string{"chat/bob"}, server: openaitest.New(openaitest.Config{Reply: reply, Keep: 4000}), prices: meteredPrices}
		dial, stop := b.server.Pipe()
		transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 200}
		defer func() {
			r.shut()
			transport.CloseIdleConnections()
			stop()
		}()
		client := openai.New(openai.Config{BaseURL: "http://model.test/v1", Model: meteredModel, HTTP: transport})
		r.line = platforms[0].line
		r.engine = engineOf(func() runs.Engine {
			return &react.Loop{
				Model: func(claybot.Agent) llm.Model {
					limiter := b.paying()
					return llm.Retried(llm.Budgeted(llm.Metered(client, b.prices), meteredModel, limiter, b.prices, nil), llm.Retries{})
				},
				Tools: b.tools, Budgets: b.paying(),
			}
		})
		test(b)
	})
}

// An engineOf is made anew for each pass.
type engineOf func() runs.Engine

func (f engineOf) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return f().Run(ctx, t)
}

func (b *bank) tools(claybot.Agent) *tools.Set {
	var list []tools.Tool
	if b.helpers {
		list = messaging.Tools(b.system.Subagents, b.system.Subagents.Directory, b.system.Subagents.Reminders)
	}
	set, err := tools.NewSet(list...)
	if err != nil {
		b.Error(err)
	}
	return set
}

// paying is the limiter of the system that runs.
func (b *bank) paying() *budgets.Limiter {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of != b.system {
		b.of = b.system
		b.limiter = agentsystem.NewLimiter(b.system, budgets.Config{
			Store: b.db, Rules: func() []budgets.Rule { return b.rules }, Operators: func() []string { return b.operators },
		})
		if err := b.limiter.Recover(b.Context()); err != nil {
			b.Error(err)
		}
	}
	return b.limiter
}

// budget is how the budget stands whose key begins so.
func (b *bank) budget(key string) storage.Budget {
	b.Helper()
	list, err := b.db.Budgets(b.Context(), 1000)
	if err != nil {
		b.Fatal(err)
	}
	for _, x := range list {
		if strings.HasPrefix(x.Key, key) {
			return x
		}
	}
	b.Fatalf("there is no budget %s among %+v", key, list)
	return storage.Budget{}
}

func (b *bank) open() []storage.OpenQuestion {
	b.Helper()
	list, err := b.system.Questions.Answers.OpenQuestions(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	return list
}

func (b *bank) answer(q storage.OpenQuestion, value string, via claybot.AnswerVia) {
	b.Helper()
	if err := b.system.Questions.Answers.AnswerQuestion(b.Context(), q.ID, claybot.Answer{Text: value, By: "operator", Via: via}); err != nil {
		b.Fatal(err)
	}
	synctest.Wait()
}

// dollar is a budget of all agents.
func dollar(micro int64) budgets.Rule {
	return budgets.Rule{Per: budgets.PerAll, Every: budgets.EveryAlways, Unit: storage.UnitMicroUSD, Limit: micro, Hard: true}
}

// talks answers with as many tokens as it may, up to n.
func talks(n int) func(openaitest.Request) openaitest.Reply {
	return func(r openaitest.Request) openaitest.Reply {
		reply := openaitest.Reply{Text: strings.Repeat("word", n)}
		if r.MaxTokens > 0 && n > r.MaxTokens {
			reply.Text, reply.Stop = strings.Repeat("word", r.MaxTokens), "length"
		}
		return reply
	}
}

// 100 concurrent runs against a dollar: by the server's own count, no more than
// that is spent, and the books say the same to the token.
func TestHundredRunsOneDollar(t *testing.T) {
	banking(t, talks(900), func(b *bank) {
		b.rules = []budgets.Rule{
			dollar(1_000_000),
			{Per: budgets.PerAll, Every: budgets.EveryMonth, Unit: storage.UnitTokens, Limit: 1 << 40},
		}
		b.start()
		for i := range 100 {
			b.post(claybot.User("chat", fmt.Sprint("dm", i), fmt.Sprint("u", i)), msg(fmt.Sprint("m", i), "tell me more"))
		}
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		input, output := b.server.Tokens()
		cost := (input + output) * perMillion
		if cost > 1_000_000 || cost < 900_000 {
			b.Errorf("the server counts %d millionths of a dollar", cost)
		}
		if bad := b.server.Refused(); len(bad) > 0 {
			b.Errorf("the server refused %q", bad)
		}
		money, counted := b.budget("all/-/always/microUSD"), b.budget("all/-/20")
		if money.Spent != cost || money.Reserved != 0 || counted.Spent != input+output || counted.Reserved != 0 {
			b.Errorf("the books say %+v and %+v, the server %d of %d tokens", money, counted, cost, input+output)
		}
		asked := b.open()
		if len(asked) == 0 || len(asked) == 100 {
			b.Errorf("%d of 100 runs came to the limit", len(asked))
		}
		// What the runs that wait have taken is in the history by now; when they
		// end, it is in the ledger too.
		for _, q := range asked {
			b.answer(q, "deny", claybot.ViaWeb)
		}
		sums, err := b.db.Spent(b.Context(), storage.SpentQuery{})
		if err != nil || sums[0].Usage.Input != input || sums[0].Usage.Output != output || sums[0].Usage.CostMicroUSD != cost || sums[0].Usage.Unpriced != 0 {
			b.Errorf("the ledger says %+v, %v; the server %d in, %d out", sums, err, input, output)
		}
	})
}

// At the limit there is one notice, whatever comes meanwhile and whatever breaks;
// an operator extends the budget, and the run goes on.
func TestLimitIsAskedOnce(t *testing.T) {
	banking(t, talks(100), func(b *bank) {
		b.start()
		b.post(bob, msg("hi", "hi"))
		synctest.Wait()
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryMonth, Unit: storage.UnitMicroUSD, Limit: 3000, Hard: true}}
		b.say("first")
		synctest.Wait()
		calls := b.server.Calls()
		for i := range 200 {
			b.say(fmt.Sprint("again ", i))
		}
		synctest.Wait()
		b.restart()
		b.crash()
		b.start()
		time.Sleep(time.Hour)
		for i := range 50 {
			b.say(fmt.Sprint("still ", i))
		}
		synctest.Wait()
		notices := 0
		for _, text := range b.chat.seen("dm-ann") {
			if strings.HasPrefix(text, "**") && strings.Contains(text, "Shall I ask an operator") {
				notices++
			}
		}
		asked := b.open()
		if notices != 1 || len(asked) != 1 || b.server.Calls() != calls {
			b.Fatalf("%d notices, %d questions, %d calls: %q", notices, len(asked), b.server.Calls()-calls, b.chat.seen("dm-ann"))
		}
		if got := b.chat.seen("dm-ann")[0]; !strings.HasPrefix(got, "**Your budget for this month is too small for the next step: nothing of $0.003 is spent") {
			b.Errorf("people read %q", got)
		}
		q := asked[0]
		if got := b.press(ann, q.ID, "approve"); !got.OK {
			b.Fatalf("pressed: %+v", got)
		}
		asked = b.open()
		if len(asked) != 1 || asked[0].ID == q.ID || !strings.HasPrefix(asked[0].Text, "Extend the budget of chat/ann for January 2000 by $0.042?") {
			b.Fatalf("operators are asked %+v", asked)
		}
		if got := b.press(ann, asked[0].ID, "approve"); got.OK {
			b.Error("a person extended his own budget")
		}
		b.crash()
		b.start()
		b.answer(b.open()[0], "approve", claybot.ViaWeb)
		time.Sleep(time.Minute)
		synctest.Wait()
		if b.server.Calls() <= calls {
			b.Errorf("the run did not go on: %q", b.chat.seen("dm-ann"))
		}
		if x := b.budget("owner/chat/ann/"); x.Extension == 0 || x.Spent == 0 || x.Reserved != 0 {
			b.Errorf("%+v", x)
		}
	})
}

// A no ends the run with one sentence, and is not asked again.
func TestLimitIsRefused(t *testing.T) {
	banking(t, talks(100), func(b *bank) {
		b.rules = []budgets.Rule{{Per: budgets.PerAgent, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 100, Hard: true}}
		b.start()
		b.say("first")
		synctest.Wait()
		b.press(ann, b.open()[0].ID, "deny")
		b.say("second")
		synctest.Wait()
		for _, id := range []claybot.MessageID{"first", "second"} {
			run := b.receipt(id).Run
			if run == nil || run.State != claybot.RunFailed || run.Error.Code != runs.CodeBudget {
				b.Errorf("%s: %+v", id, run)
			}
		}
		if n := len(b.open()); n != 0 || b.server.Calls() != 0 {
			b.Errorf("%d questions are open, %d calls were made", n, b.server.Calls())
		}
		time.Sleep(24 * time.Hour) // a new day, and a new question
		b.say("third")
		synctest.Wait()
		if n := len(b.open()); n != 1 {
			b.Errorf("%d questions are open on the next day", n)
		}
	})
}

// A budget of a day begins anew at midnight.
func TestBudgetOfADay(t *testing.T) {
	banking(t, talks(2000), func(b *bank) {
		b.rules = []budgets.Rule{{Per: budgets.PerAgent, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 3000, Hard: true}}
		b.start()
		midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		time.Sleep(time.Until(midnight) - time.Second)
		b.say("one")
		synctest.Wait()
		if x := b.budget("agent/"); x.Period != midnight.Add(-time.Hour).Format(time.DateOnly) || x.Spent == 0 {
			b.Errorf("before midnight %+v", x)
		}
		time.Sleep(time.Second)
		b.post(ann, typed("reset", claybot.MessageReset, ""))
		b.say("two")
		synctest.Wait()
		if x := b.budget("agent/"); x.Period != midnight.Format(time.DateOnly) || x.Spent == 0 {
			b.Errorf("after midnight %+v", x)
		}
		if run := b.receipt("two").Run; run == nil || run.State != claybot.RunSucceeded {
			b.Errorf("the second run %+v", run)
		}
	})
}

// What a dead process had set aside is booked as it was; the run that goes on
// pays for its own call.
func TestCrashBooksTheMost(t *testing.T) {
	var b0 *bank
	hang := true
	reply := func(r openaitest.Request) openaitest.Reply {
		if hang {
			return openaitest.Reply{Fault: openaitest.FaultHang}
		}
		return talks(10)(r)
	}
	banking(t, reply, func(b *bank) {
		b0 = b
		b0.rules = []budgets.Rule{dollar(1_000_000)}
		b.start()
		b.say("hello")
		synctest.Wait()
		aside := b.budget("all/").Reserved
		if aside == 0 {
			b.Fatal("nothing is set aside while the call is made")
		}
		b.crash()
		hang = false
		b.start()
		synctest.Wait()
		input, output := b.server.Tokens()
		x := b.budget("all/")
		if x.Spent != aside+(input+output)*perMillion || x.Reserved != 0 || output == 0 {
			b.Errorf("%+v, want %d and %d tokens", x, aside, input+output)
		}
	})
}

// A model without a price is refused where money is limited, with the next step,
// and without a question.
func TestNoPriceNoMoney(t *testing.T) {
	banking(t, talks(10), func(b *bank) {
		b.rules, b.prices = []budgets.Rule{dollar(1_000_000)}, llm.Prices{}
		b.start()
		b.say("hello")
		b.wants("No price is known for the model metered-1, so the budget of all agents cannot be kept. Ask the operator to add it under model.prices, or to choose another model.")
		b.rules[0].Hard = false
		b.say("again")
		synctest.Wait()
		if x := b.budget("all/"); b.server.Calls() != 1 || x.Unpriced != 1 || x.Spent != 0 {
			b.Errorf("%d calls, %+v", b.server.Calls(), x)
		}
	})
}

// Most of a budget being spent is told once, and one that only warns stops
// nothing.
func TestWarnings(t *testing.T) {
	banking(t, talks(300), func(b *bank) {
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 800}}
		b.start()
		for i := range 4 {
			b.say(fmt.Sprint("m", i))
			synctest.Wait()
		}
		b.restart()
		b.say("m5")
		synctest.Wait()
		var told []string
		for _, text := range b.chat.seen("dm-ann") {
			if strings.HasPrefix(text, "Your budget") {
				told = append(told, text)
			}
		}
		if len(told) == 0 || len(told) > 2 || !strings.Contains(told[len(told)-1], "This is only a warning") {
			b.Errorf("told %q", told)
		}
		if run := b.receipt("m5").Run; run.State != claybot.RunSucceeded {
			b.Errorf("%+v", run)
		}
	})
}

// Subagents spend from the budgets of the agent and the run that their chain
// began with, wherever they are in it, and from those of its person and channel.
func TestChildrenSpendFromTheirParents(t *testing.T) {
	reply := func(r openaitest.Request) openaitest.Reply {
		last := r.Messages[len(r.Messages)-1]
		switch {
		case last.Role == llm.RoleUser && strings.Contains(last.Content, "begin"):
			return openaitest.Reply{Calls: spawn("", "deeper", "alpha").Calls}
		case last.Role == llm.RoleUser && strings.Contains(last.Content, "deeper"):
			return openaitest.Reply{Calls: spawn("", "bravo").Calls}
		}
		return openaitest.Reply{Text: "done"}
	}
	banking(t, reply, func(b *bank) {
		b.helpers = true
		for _, per := range []string{budgets.PerAgent, budgets.PerOwner, budgets.PerChannel, budgets.PerRun, budgets.PerTask, budgets.PerAll} {
			b.rules = append(b.rules, budgets.Rule{Per: per, Every: budgets.EveryMonth, Unit: storage.UnitTokens, Limit: 1 << 40, Hard: true})
		}
		b.rules = append(b.rules,
			budgets.Rule{Per: budgets.PerAll, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: 1 << 40, Match: "chat:dm-ann"},
			budgets.Rule{Per: budgets.PerAll, Every: budgets.EveryAlways, Unit: storage.UnitTokens, Limit: 1 << 40, Match: "slack"})
		b.start()
		b.say("begin")
		synctest.Wait()
		run := b.receipt("begin").Run
		if run == nil || run.State != claybot.RunSucceeded || b.server.Calls() != 6 {
			b.Fatalf("%+v after %d calls", run, b.server.Calls())
		}
		input, output := b.server.Tokens()
		list, err := b.db.Budgets(b.Context(), 100)
		if err != nil || len(list) != 6 {
			b.Errorf("%v, budgets %+v", err, list)
		}
		for _, key := range []string{
			"agent/" + string(b.agent(ann)) + "/2000-01/", "owner/chat/ann/2000-01/", "channel/chat:dm-ann/2000-01/", "run/" + string(run.ID) + "/run/", "all/-/2000-01/",
			"all/-/always/tokens/warn/chat:dm-ann",
		} {
			if x := b.budget(key); x.Spent != input+output || x.Reserved != 0 {
				b.Errorf("%+v, want %d", x, input+output)
			}
		}
	})
}

// Helpers at a limit end, and the one notice is that of the agent they work for.
func TestSpawnStormAtTheLimit(t *testing.T) {
	reply := func(r openaitest.Request) openaitest.Reply {
		if last := r.Messages[len(r.Messages)-1]; strings.Contains(last.Content, "begin") {
			return openaitest.Reply{Calls: spawn("", "a", "b", "c", "d", "e", "f", "g", "h").Calls}
		}
		return talks(3000)(r)
	}
	banking(t, reply, func(b *bank) {
		b.helpers = true
		b.rules = []budgets.Rule{{Per: budgets.PerRun, Unit: storage.UnitTokens, Limit: 30_000, Hard: true}}
		b.start()
		b.say("begin")
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		input, output := b.server.Tokens()
		asked := 0
		for _, text := range b.chat.seen("dm-ann") {
			if strings.Contains(text, "Shall I ask an operator") {
				asked++
			}
		}
		if input+output > 30_000 || b.server.Calls() < 3 || len(b.open()) != 1 || asked != 1 {
			b.Errorf("%d tokens, %d questions, people see %q", input+output, len(b.open()), b.chat.seen("dm-ann"))
		}
	})
}

// The budget of a token counts the conversations of that token over the API, and no others.
// At its limit nobody is asked: the run ends, and the token has no room for another request
// until the next day.
func TestBudgetOfToken(t *testing.T) {
	banking(t, talks(100), func(b *bank) {
		day := budgets.Rule{Per: budgets.PerToken, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 100_000, Hard: true, Token: "ci"}
		b.rules = []budgets.Rule{day, {Per: budgets.PerToken, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 1, Hard: true, Token: "cd"}}
		b.start()
		b.say("of a person")
		synctest.Wait()
		limiter := agentsystem.NewLimiter(b.system, budgets.Config{Store: b.db, Rules: func() []budgets.Rule { return b.rules }})
		spent := func() bool {
			b.Helper()
			resets, spent, err := limiter.TokenSpent(b.Context(), "ci")
			if tomorrow := time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC); err != nil || spent && !resets.Equal(tomorrow) {
				b.Fatalf("spent %v until %v, %v", spent, resets, err)
			}
			return spent
		}
		if list, err := b.db.Budgets(b.Context(), 100); err != nil || len(list) != 0 {
			b.Errorf("a person spends of %+v, %v", list, err)
		}
		of := claybot.User(claybot.ConnectorAPI, "main", "ci")
		b.post(of, msg("one", "hello"))
		synctest.Wait()
		if x := b.budget("token/ci/2000-01-01/tokens"); x.Spent == 0 || x.Limit != day.Limit || spent() {
			b.Fatalf("after a request: %+v", x)
		}
		day.Limit = b.budget("token/ci/").Spent + 1
		b.rules[0] = day
		if !spent() {
			b.Error("a budget without room has room")
		}
		calls := b.server.Calls()
		b.post(of, msg("two", "again"))
		synctest.Wait()
		run := b.receipt("two").Run
		if run == nil || run.State != claybot.RunFailed || run.Error.Code != runs.CodeBudget || !strings.Contains(run.Error.Text, "he budget of the token ci for today") || b.server.Calls() != calls {
			b.Errorf("above the budget: %+v after %d calls", run, b.server.Calls()-calls)
		}
		time.Sleep(24 * time.Hour)
		if spent() {
			b.Error("spent on the next day")
		}
	})
}
