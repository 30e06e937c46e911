package agentsystem_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// verdict is what became of the newest message that ref names.
func (r *rig) verdict(ref string) overview.Verdict {
	r.Helper()
	return r.why(ref).Verdict()
}

// why is the story of the message that ref names.
func (r *rig) why(ref string) overview.Story {
	r.Helper()
	stories, err := r.system.Overview.Why(r.Context(), ref)
	if err != nil || len(stories) != 1 {
		r.Fatalf("why %s: %d stories, %v", ref, len(stories), err)
	}
	return stories[0]
}

// slashStatus is what /status says.
func (r *rig) slashStatus(id string) string {
	r.Helper()
	before := len(r.chat.seen("dm-ann"))
	r.post(ann, command(id, "status"))
	synctest.Wait()
	seen := r.chat.seen("dm-ann")
	if len(seen) == before {
		r.Fatalf("no answer to /status: %q", seen)
	}
	return seen[len(seen)-1]
}

// tight is a budget of each person that no call fits in.
func tight(every string) budgets.Rule {
	return budgets.Rule{Per: budgets.PerOwner, Every: every, Unit: storage.UnitMicroUSD, Limit: 3000, Hard: true}
}

// A run that failed has failed, although the notice of that was delivered, and every
// try of a model counts.
func TestVerdictOfAFailedRun(t *testing.T) {
	broken := func(openaitest.Request) openaitest.Reply { return openaitest.Reply{Fault: openaitest.FaultUnavailable} }
	banking(t, broken, func(b *bank) {
		b.start()
		b.say("hello")
		time.Sleep(time.Minute)
		synctest.Wait()
		v := b.verdict("hello")
		if v.Outcome != overview.OutcomeFailed || !strings.HasPrefix(v.Text, "The run failed: ") || !strings.HasSuffix(v.Text, " The sender was notified.") {
			b.Errorf("%+v", v)
		}
		run := b.receipt("hello").Run
		if tries := int64(b.server.Calls()); tries != 3 || run.Usage.LLMCalls != tries || run.Usage.Input != 0 || run.Usage.CostMicroUSD != 0 {
			b.Errorf("%d tries, usage %+v", tries, run.Usage)
		}
	})
}

// A stopped call costs the same in the budget, in the run and in the ledger.
func TestOnePriceForAStop(t *testing.T) {
	for name, reply := range map[string]openaitest.Reply{
		"in the middle":      {Text: strings.Repeat("word ", 400), Piece: 50, Fault: openaitest.FaultStall, CutAt: 4000},
		"before the answer":  {Fault: openaitest.FaultHang},
		"without a count":    {Text: "done", Fault: openaitest.FaultNoUsage},
		"with all of it":     {Text: "done"},
		"refused by the key": {Fault: openaitest.FaultAuth},
	} {
		t.Run(name, func(t *testing.T) {
			banking(t, func(openaitest.Request) openaitest.Reply { return reply }, func(b *bank) {
				b.rules = []budgets.Rule{dollar(5_000_000)}
				b.start()
				b.say("tell me more")
				time.Sleep(time.Second)
				b.post(ann, stop("s"))
				synctest.Wait()
				run := b.receipt("tell me more").Run
				if !run.State.Ended() {
					b.Fatalf("%+v", run)
				}
				sums, err := b.db.Spent(b.Context(), storage.SpentQuery{})
				if err != nil {
					b.Fatal(err)
				}
				ledger := int64(0)
				for _, s := range sums {
					ledger += s.Usage.CostMicroUSD
				}
				x := b.budget("all/")
				if x.Spent != run.Usage.CostMicroUSD || x.Spent != ledger || x.Reserved != 0 || run.Usage.LLMCalls != 1 || (x.Spent == 0) != (name == "refused by the key") {
					b.Errorf("the budget says %d, the run %d, the ledger %d; %+v", x.Spent, run.Usage.CostMicroUSD, ledger, run.Usage)
				}
			})
		})
	}
}

// A normal first message fits in a budget that easily holds its answer, although the
// tools of an agent make the request long.
func TestFirstHelloFits(t *testing.T) {
	banking(t, talks(20), func(b *bank) {
		b.helpers = true
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryDay, Unit: storage.UnitTokens, Limit: 5000, Hard: true}}
		b.start()
		b.say("hello")
		synctest.Wait()
		if run := b.receipt("hello").Run; run == nil || run.State != claybot.RunSucceeded || len(b.open()) != 0 {
			b.Errorf("%+v, people see %q", run, b.chat.seen("dm-ann"))
		}
	})
}

// Behind a question about a budget a person is told once what their messages wait for;
// a raised limit frees all that waits, and not a moment earlier.
func TestRaisedLimitFreesWhatWaits(t *testing.T) {
	banking(t, talks(50), func(b *bank) {
		b.start()
		b.rules = []budgets.Rule{tight(budgets.EveryMonth)}
		b.say("first")
		synctest.Wait()
		for _, text := range []string{"second", "third", "fourth"} {
			b.say(text)
		}
		synctest.Wait()
		seen := b.chat.seen("dm-ann")
		if len(seen) != 2 || !strings.HasPrefix(seen[0], "**Your budget for this month is too small") || !strings.HasPrefix(seen[1], "Your message has to wait") ||
			!strings.Contains(seen[1], "/approve "+b.open()[0].ID[:6]) || !strings.Contains(seen[1], "/stop") {
			b.Fatalf("people see %q", seen)
		}
		if got := b.slashStatus("c1"); !strings.Contains(got, "I am waiting for your decision: Your budget for this month") {
			b.Errorf("/status says %q", got)
		}
		paused := "waits for a decision about a budget: “Your budget for this month is too small"
		if v := b.verdict("first"); v.Outcome != overview.OutcomePaused || !strings.Contains(v.Text, paused) {
			b.Errorf("%+v", v)
		}
		for _, text := range []string{"second", "third", "fourth"} { // they wait for nothing else
			if v := b.verdict(text); v.Outcome != overview.OutcomeWaiting || !strings.Contains(v.Text, paused) {
				b.Errorf("%s: %+v", text, v)
			}
		}
		if steps := b.why("third").Steps; !strings.Contains(steps[2].Text, paused) || !strings.HasSuffix(steps[2].Text, "; 1 earlier message waits before it") {
			b.Errorf("%+v", steps)
		}
		b.post(ann, command("c2", "why"))
		synctest.Wait()
		if seen := b.chat.seen("dm-ann"); !strings.Contains(seen[len(seen)-1], paused) {
			b.Errorf("/why says %q", seen[len(seen)-1])
		}
		list, err := b.paying().Budgets(b.Context(), 10)
		if err != nil || len(list) != 1 || list[0].Waiting != 1 || list[0].Name != "the budget of chat/ann for January 2000" {
			b.Errorf("%+v, %v", list, err)
		}
		recheck := func() {
			b.Helper()
			if err := b.paying().Recheck(b.Context()); err != nil {
				b.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		recheck()
		if b.server.Calls() != 0 || len(b.open()) != 1 {
			b.Errorf("%d calls, %d questions before the limit was raised", b.server.Calls(), len(b.open()))
		}
		b.rules[0].Limit = 4000 // still too small: there is a new question, and none at the next look
		recheck()
		first := b.open()
		recheck()
		if open := b.open(); b.server.Calls() != 0 || len(open) != 1 || open[0].ID != first[0].ID {
			b.Errorf("%d calls, questions %+v and %+v", b.server.Calls(), first, open)
		}
		b.rules[0].Limit = 5_000_000
		recheck()
		if open := b.open(); len(open) != 0 {
			b.Errorf("still open: %+v", open)
		}
		for _, text := range []string{"first", "second", "third", "fourth"} {
			if v := b.verdict(text); v.Outcome != overview.OutcomeAnswered {
				b.Errorf("%s: %+v", text, v)
			}
		}
		if x := b.budget("owner/"); x.Extension != 0 {
			b.Errorf("it was extended: %+v", x)
		}
		if list, err := b.paying().Budgets(b.Context(), 10); err != nil || list[0].Waiting != 0 {
			b.Errorf("%+v, %v", list, err)
		}
	})
}

// An extension by an operator frees every run that waits for the same budget, and a
// budget that is removed, or of a day that is over, holds no run.
func TestWhatElseFreesABudget(t *testing.T) {
	for name, free := range map[string]func(b *bank) error{
		"extended": func(b *bank) error {
			_, err := b.paying().Extend(b.Context(), storage.Extension{ID: "x", Key: "owner/chat/ann/2000-01-01/microUSD", By: 1_000_000, Who: "operator"})
			return err
		},
		"removed": func(b *bank) error { b.rules = nil; return b.paying().Recheck(b.Context()) },
		"the next day": func(b *bank) error {
			time.Sleep(13 * time.Hour)
			b.rules[0].Limit = 2_000_000 // the new day has it; the old one is never looked at again
			return b.paying().Recheck(b.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			banking(t, talks(50), func(b *bank) {
				b.start()
				b.rules = []budgets.Rule{tight(budgets.EveryDay)}
				time.Sleep(12 * time.Hour)
				b.say("first")
				synctest.Wait()
				if len(b.open()) != 1 {
					b.Fatalf("people see %q", b.chat.seen())
				}
				if err := free(b); err != nil {
					b.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if v := b.verdict("first"); v.Outcome != overview.OutcomeAnswered || len(b.open()) != 0 {
					b.Errorf("%+v, open %+v", v, b.open())
				}
			})
		})
	}
}

// What was written before a stop stays: in the chat, in the history that the model
// reads next, and with the run.
func TestStoppedAnswerIsKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.grow(streams, half1+half2)
		r.mind.pace = time.Hour
		r.start()
		r.say("begin")
		time.Sleep(2 * time.Second)
		r.post(ann, stop("s"))
		synctest.Wait()
		kept := strings.TrimSpace(half1) + "\n\n*(stopped)*"
		run := r.receipt("begin").Run
		if got := r.chat.seen()[0]; got != kept || run.Output != kept || run.State != claybot.RunCanceled {
			t.Errorf("people see %q, the run has %q", got, run.Output)
		}
		var end runs.RunCanceled
		all := r.events(run.ID)
		if err := json.Unmarshal(all[len(all)-1].Data, &end); err != nil || end.Output != kept {
			t.Errorf("the run ends with %+v, %v", end, err)
		}
		if v := r.verdict("begin"); v.Outcome != overview.OutcomeStopped || v.Text != "The run was stopped in the chat. What it had written until then was kept." {
			t.Errorf("%+v", v)
		}
		r.mind.pace = 0
		r.say("go on")
		time.Sleep(time.Minute)
		synctest.Wait()
		asked := r.mind.asked()
		said := ""
		for _, m := range asked[len(asked)-1].Messages {
			if m.Role == llm.RoleAssistant {
				said += m.Content
			}
		}
		if said != kept {
			t.Errorf("the model reads that it said %q", said)
		}
		r.checkEvents(ann)
	})
}

// How long a call of a tool took includes what it waited for.
func TestToolsTellHowLongTheyTook(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("begin", spawn("", "alpha"), llmtest.Say("all done"))
		r.mind.hold("alpha", 5*time.Second)
		r.start()
		r.say("begin")
		time.Sleep(time.Minute)
		synctest.Wait()
		run := r.receipt("begin").Run
		used, err := r.system.Overview.ToolsOf(r.Context(), run.ID)
		if err != nil || len(used) != 1 || used[0].Tool != "spawn_and_wait" || !used[0].OK || used[0].MS < 5000 || used[0].MS > 59_000 {
			t.Errorf("%+v, %v", used, err)
		}
	})
}

// An operator reads in their own chat why a run failed and what to do; other people
// do not, nor does the operator where others read along.
func TestOperatorReadsTheCause(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.mind.plan("bad", llmtest.Reply{Err: &llm.Error{Class: llm.Permanent, Status: 401, Account: true, Text: "the provider refuses the key; check OPENAI_API_KEY"}})
		r.start()
		boss := claybot.User("chat", "dm-boss", "boss")
		r.post(boss, msg("b1", "bad"))
		r.post(ann, msg("a1", "bad"))
		group := claybot.User("chat", "room", "boss")
		m := msg("g1", "bad")
		m.Context.Group = true
		r.post(group, m)
		synctest.Wait()
		if got := strings.Join(r.chat.seen("dm-boss"), "\n"); !strings.Contains(got, "Cause: the provider refuses the key (HTTP 401).\nFix: check OPENAI_API_KEY.") {
			t.Errorf("the operator reads %q", got)
		}
		for _, place := range []string{"dm-ann", "room"} {
			if got := strings.Join(r.chat.seen(place), "\n"); got == "" || strings.Contains(got, "Cause") || strings.Contains(got, "OPENAI") {
				t.Errorf("in %s people read %q", place, got)
			}
		}
	})
}

// What an operator is told to check is the setting that holds the address.
func TestFixNamesTheAddress(t *testing.T) {
	t.Parallel()
	for _, e := range []*llm.Error{{Class: llm.Permanent, Status: 404, Text: "no"}, {Class: llm.Transient, Text: "no"}, {Class: llm.Permanent, Text: "no"}} {
		bubble(t, func(r *rig) {
			r.profile.Address = "model.base_url"
			r.mind.plan("bad", llmtest.Reply{Err: e})
			r.start()
			r.post(claybot.User("chat", "dm-boss", "boss"), msg("b1", "bad"))
			synctest.Wait()
			if got := strings.Join(r.chat.seen("dm-boss"), "\n"); !strings.Contains(got, "model.base_url") || strings.Contains(got, "OPENAI_BASE_URL") {
				t.Errorf("%+v: the operator reads %q", e, got)
			}
		})
	}
}

// A moment has its date, unless it is today.
func TestWhyHasDates(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		r.start()
		r.say("hello")
		synctest.Wait()
		ask := func(id string) string {
			r.post(ann, command(id, "why"))
			synctest.Wait()
			seen := r.chat.seen()
			return seen[len(seen)-1]
		}
		if got := ask("c1"); !strings.HasPrefix(got, "Your message from today at 0:00 UTC: It was answered") {
			t.Errorf("on the same day: %q", got)
		}
		time.Sleep(30 * time.Hour)
		if got := ask("c2"); !strings.HasPrefix(got, "Your message from yesterday at 0:00 UTC: It was answered") {
			t.Errorf("on the next day: %q", got)
		}
	})
}

// A question of an older version, which does not say the limit, is read as well.
func TestOlderBudgetQuestion(t *testing.T) {
	for digest, want := range map[string]runs.BudgetAsk{
		"ask to extend owner/a b/day":           {Key: "owner/a b/day", Limit: -1},
		"limit 20 ask to extend owner/a b/day":  {Key: "owner/a b/day", Limit: 20},
		"extend by 25 owner/a b/day":            {Key: "owner/a b/day", Limit: -1, By: 25},
		"limit 20 extend by 25 owner/a b/day":   {Key: "owner/a b/day", Limit: 20, By: 25},
		"limit x extend by 25 owner/a b/day":    {},
		"limit 20 extend by none owner/a b/day": {},
		"something else":                        {},
	} {
		key := runs.KeyAskToExtend
		if strings.Contains(digest, "extend by") {
			key = runs.KeyExtend
		}
		got, ok := runs.BudgetAskOf(claybot.Question{Key: key, Digest: digest})
		if ok != (want != runs.BudgetAsk{}) || ok && got != want {
			t.Errorf("%q is %+v, %v", digest, got, ok)
		}
	}
}

// What a message waits for, that no run has taken.
func TestVerdictOfAWaitingMessage(t *testing.T) {
	for want, r := range map[string]storage.Receipt{
		"It waits for its turn.":                                       {},
		"It waits behind 2 other messages.":                            {Ahead: 2},
		"It waits until its agent has ended the run that it works on.": {Busy: "r"},
		"Its agent's run is paused: it waits for 1 subagent.": {
			Busy: "r", Ahead: 2, Paused: &claybot.Awaiting{Reason: claybot.AwaitChildren, Answers: []claybot.MessageID{"a"}},
		},
		"It is parked until its agent can be used again, and is retried until then.": {Parked: "state.json is a directory", Ahead: 1},
	} {
		if v := overview.VerdictOf((texts.Voice{}), r, overview.Free); v.Outcome != overview.OutcomeWaiting || v.Text != want {
			t.Errorf("%+v: %+v, want %q", r, v, want)
		}
	}
	if v := overview.VerdictOf(texts.Voice{}, storage.Receipt{Ahead: 1}, overview.Stopped); v.Outcome != overview.OutcomeWaiting || v.Text != texts.WaitsStopped {
		t.Errorf("of a stopped agent: %+v", v)
	}
}

// Who has used up the default budget reads where operators change it; of a budget of the
// configuration nobody needs to be told that.
func TestDefaultBudgetSaysHowToChangeIt(t *testing.T) {
	for _, given := range []bool{true, false} {
		banking(t, talks(50), func(b *bank) {
			b.start()
			rule := tight(budgets.EveryDay)
			rule.Default = given
			b.rules = []budgets.Rule{rule}
			b.say("first")
			synctest.Wait()
			if seen := b.chat.seen("dm-ann"); len(seen) != 1 || strings.Contains(seen[0], "operators change it with `budgets` in the configuration. Shall I ask") != given {
				b.Errorf("default %v: people see %q", given, seen)
			}
		})
	}
}
