package agentsystem_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/budgets"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/ask"
)

// openQuestions are those of the shared agent.
func (r *rig) openQuestions() (open []claybot.Question) {
	r.Helper()
	all, err := r.system.Questions.Answers.OpenQuestions(r.Context(), r.agent(everyone))
	if err != nil {
		r.Fatal(err)
	}
	for _, q := range all {
		open = append(open, q.Question)
	}
	return open
}

// paying makes the agents of a rig pay, which needs approval, when they read a text.
func (r *rig) paying(text string, rules react.Rules) {
	rules.Ask = []string{"pay"}
	r.calling(text, rules, claybot.ToolCall{ID: "c1", Name: "pay", Args: "{}"})
}

// calling makes the agents of a rig make a call when they read a text.
func (r *rig) calling(text string, rules react.Rules, call claybot.ToolCall, more ...tools.Tool) {
	r.line = platforms[0].line
	set := r.bench.set(r.T, more...)
	r.engine = &react.Loop{
		Model:   func(claybot.Agent) llm.Model { return r.mind },
		Tools:   func(claybot.Agent) *tools.Set { return set },
		Approve: func(claybot.Agent) react.Rules { return rules },
	}
	r.mind.plan(text, llmtest.Use(call), llmtest.Say("ended"))
}

// A call of a shared agent that discloses something asks the member whose message its run
// answers; where it answers none, the call is refused at once.
func TestSharedDisclosures(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"ann", ""} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			sharing(t, func(r *rig) {
				published := 0
				publish := tools.New(tools.Spec{
					Tool: llm.Tool{Name: "publish", Description: "publish"}, Effect: tools.Once,
					Discloses: func(ctx context.Context, env tools.Env, _ json.RawMessage) *tools.Disclosure {
						return r.system.Subagents.Directory.DisclosesNotes(ctx, env, true)
					},
				}, func(context.Context, tools.Env, struct{}) (tools.Result, error) {
					published++
					return tools.Result{Text: "published"}, nil
				})
				r.calling("go", react.Rules{}, claybot.ToolCall{ID: "c1", Name: "publish", Args: "{}"}, publish)
				r.start()
				r.inRoom(by("bob", "hi", "hi"))
				synctest.Wait()
				want := 0
				if who != "" {
					want = 1
					r.inRoom(by(who, "m", "go"))
				} else {
					r.post(everyone, claybot.AgentMessage{ID: "m", Type: claybot.MessageSystem, Kind: claybot.KindReminder, Text: "go"})
				}
				after(time.Minute)
				open := r.openQuestions()
				if len(open) != want {
					r.Fatalf("open are %+v", open)
				}
				for _, q := range open {
					if got := r.press(claybot.User("chat", "room", "bob"), q.ID, "approve"); got != refusal {
						r.Errorf("bob is told %+v", got)
					}
					if got := r.press(claybot.User("chat", "room", who), q.ID, "approve"); !got.OK {
						r.Errorf("%s is told %+v", who, got)
					}
				}
				after(time.Minute)
				if got := r.state("m"); got != claybot.RunSucceeded || published != want {
					r.Errorf("the run is %s, it published %d times", got, published)
				}
			})
		})
	}
}

// A member does not permit a shared agent something for all members; approvers do.
func TestSharedPermissions(t *testing.T) {
	t.Parallel()
	for _, approvers := range [][]string{nil, {"chat/bob"}} {
		sharing(t, func(r *rig) {
			call := with(tools.RequestPermission, obj{"permission": "@web", "reason": "news"})
			call.ID = "c1"
			r.calling("go", react.Rules{Approvers: approvers}, call, ask.RequestPermission(permitting{r}))
			r.start()
			r.inRoom(by("ann", "m", "go"))
			after(time.Minute)
			open := r.openQuestions()
			if len(open) != len(approvers) {
				r.Fatalf("open are %+v", open)
			}
			for _, q := range open {
				if !slices.Equal(q.Approvers, approvers) {
					r.Errorf("%q are asked", q.Approvers)
				}
				r.press(claybot.User("chat", "room", "bob"), q.ID, "deny")
			}
			after(time.Minute)
			got := r.result(everyone, tools.RequestPermission).Text
			if want := "no member decides alone"; strings.Contains(got, want) != (approvers == nil) || !strings.HasPrefix(got, "not approved") {
				r.Errorf("%q: the agent reads %q", approvers, got)
			}
		})
	}
}

// permitting grants rights in the system that runs.
type permitting struct{ r *rig }

func (p permitting) Grant(ctx context.Context, id claybot.AgentID, right string) error {
	return p.r.system.Profiles.Grant(ctx, id, right)
}

// Each member who writes while the shared agent waits reads once for what it waits.
func TestSharedPendingNotices(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"ann", ""} {
		sharing(t, func(r *rig) {
			r.paying("go", react.Rules{Approvers: []string{"chat/boss"}})
			r.start()
			r.inRoom(by("ann", "hi", "hi"))
			synctest.Wait()
			want := "another person in this group has an open request"
			if who != "" {
				r.inRoom(by(who, "m", "go"))
			} else {
				want = "I'm working on a task of this group, which waits for the approval of chat/boss"
				r.post(everyone, claybot.AgentMessage{ID: "m", Type: claybot.MessageSystem, Kind: claybot.KindReminder, Text: "go"})
			}
			after(time.Minute)
			for _, m := range []string{"bob 1", "eve 1", "bob 2"} {
				user, _, _ := strings.Cut(m, " ")
				r.inRoom(by(user, m, m))
				after(time.Minute)
			}
			var told []string
			for _, p := range r.chat.posts {
				if strings.Contains(p.out.Text, want) {
					told = append(told, p.out.Route.UserID)
				}
			}
			if !slices.Equal(told, []string{"bob", "eve"}) {
				r.Errorf("%q have read %q; people see %q", told, want, r.chat.seen())
			}
		})
	}
}

// Who loses access loses the work of the subagents that their runs started as well, and what
// those report; those of others go on.
func TestRevokeMemberOfSharedSubagents(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		user    string
		outside bool
		want    claybot.RunState
	}{
		{"their subagent", "T2/eve", true, claybot.RunCanceled},
		{"another subagent", "ann", false, claybot.RunSucceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pairing(t, func(r *rig) {
				r.profile.Shared = true
				r.mind.plan("begin", startAll(true, "dig"), llmtest.Say("started"))
				r.mind.plan("dig", startAll(true, "mine"), llmtest.Say("dug"))
				r.mind.hold("mine", time.Hour)
				r.start()
				for _, id := range []string{"room", "T2/eve"} {
					if err := r.system.People.Allow(r.Context(), "chat", id); err != nil {
						r.Fatal(err)
					}
				}
				m := by(tt.user, "m", "begin")
				m.From.Outsider = tt.outside
				r.inRoom(m)
				synctest.Wait()
				child := r.children(everyone)[0]
				if err := r.system.Control.Revoke(r.Context(), "chat", "T2/eve"); err != nil {
					r.Fatal(err)
				}
				after(3 * time.Hour)
				below, err := r.db.Children(r.Context(), child.ID)
				if err != nil || len(below) != 1 {
					r.Fatalf("below are %+v, %v", below, err)
				}
				run := r.receipt(claybot.MessageID("task/" + below[0].Descriptor.UID)).Run
				if run == nil || run.State != tt.want {
					r.Errorf("the run is %+v, want %s", run, tt.want)
				}
				if got := r.systemTexts(child.ID, claybot.KindResult); len(got) > 0 == tt.outside {
					r.Errorf("the parent reads %q", got)
				}
			})
		})
	}
}

// A run of a shared agent that waits for an extension waits for the budget of the member
// whose message it answers, also while no process works on it.
func TestSharedExtension(t *testing.T) {
	t.Parallel()
	banking(t, talks(100), func(b *bank) {
		b.profile.Shared = true
		b.start()
		b.inRoom(by("bob", "hi", "hi"))
		synctest.Wait()
		b.rules = []budgets.Rule{{Per: budgets.PerOwner, Every: budgets.EveryMonth, Unit: storage.UnitMicroUSD, Limit: 3000, Hard: true}}
		b.inRoom(by("ann", "m", "hello"))
		synctest.Wait()
		asked := b.open()
		if len(asked) != 1 || asked[0].Question.Person != "chat/ann" {
			b.Fatalf("asked are %+v; people see %q", asked, b.chat.seen())
		}
		for range 3 {
			if err := b.paying().Recheck(b.Context()); err != nil {
				b.Fatal(err)
			}
			after(10 * time.Minute)
		}
		if got := b.open(); len(got) != 1 || got[0].ID != asked[0].ID {
			b.Errorf("asked again: %+v", got)
		}
		b.rules[0].Limit = 1 << 40
		if err := b.paying().Recheck(b.Context()); err != nil {
			b.Fatal(err)
		}
		after(time.Minute)
		if got := b.state("m"); got != claybot.RunSucceeded {
			b.Errorf("with another limit the run is %s", got)
		}
	})
}

// A run of a shared agent that no message of a member began has no person to ask: its calls
// are refused at once, unless approvers are configured, and the group goes on.
func TestSharedRunsOfNoMember(t *testing.T) {
	t.Parallel()
	system := func(kind claybot.SystemKind) func(r *rig) {
		return func(r *rig) {
			r.post(everyone, claybot.AgentMessage{ID: "m", Type: claybot.MessageSystem, Kind: kind, Text: "go"})
		}
	}
	for name, begin := range map[string]func(r *rig){
		"reminder": system(claybot.KindReminder),
		"report":   system(claybot.KindResult),
		"api": func(r *rig) {
			m := claybot.AgentMessage{ID: "m", Type: claybot.MessageUser, Text: "go", FirstHand: true, From: claybot.Sender{UserID: "bob", Name: "bob"}}
			if _, err := r.system.Control.StartRun(r.Context(), agentsystem.Address{Agent: r.agent(everyone)}, m); err != nil {
				r.Fatal(err)
			}
		},
	} {
		for _, approvers := range [][]string{nil, {"chat/bob"}} {
			t.Run(name+" "+strings.Join(approvers, ","), func(t *testing.T) {
				t.Parallel()
				sharing(t, func(r *rig) {
					r.paying("go", react.Rules{Approvers: approvers})
					r.start()
					r.inRoom(by("ann", "hi", "hi"))
					synctest.Wait()
					begin(r)
					after(time.Minute)
					open := r.openQuestions()
					if len(open) != len(approvers) {
						r.Fatalf("open are %+v", open)
					}
					for _, q := range open {
						if got := r.press(claybot.User("chat", "room", "bob"), q.ID, "approve"); !got.OK {
							r.Errorf("the approver is told %+v", got)
						}
					}
					after(time.Minute)
					if got := r.state("m"); got != claybot.RunSucceeded {
						r.Errorf("the run is %s", got)
					}
					if n := len(r.bench.times("pay")); n != len(approvers) {
						r.Errorf("paid %d times", n)
					}
				})
			})
		}
	}
}

// An undo of a shared agent asks the member who sent /undo; one of an operator asks no member.
func TestSharedUndoAsks(t *testing.T) {
	t.Parallel()
	sharing(t, func(r *rig) {
		r.line = platforms[0].line
		var refused error
		r.engine = engineFunc(effective)
		r.engines = map[string]runs.Engine{claybot.EngineUndo: engineFunc(func(ctx context.Context, turn *runs.Turn, yield func(claybot.Record, error) bool) {
			hesitant(ctx, turn, func(rec claybot.Record, err error) bool {
				refused = err
				return yield(rec, err)
			})
		})}
		r.start()
		r.inRoom(by("ann", "go", "go"))
		synctest.Wait()
		if _, err := r.system.Control.UndoRun(r.Context(), r.receipt("go").Run.ID, "operator"); err != nil {
			r.Fatal(err)
		}
		after(time.Minute)
		if open := r.openQuestions(); len(open) > 0 || refused == nil {
			r.Fatalf("the undo of an operator asks %+v, ends with %v", open, refused)
		}
		undo := by("bob", "u", "")
		undo.Type, undo.Command = claybot.MessageCommand, "undo"
		r.inRoom(undo)
		after(time.Minute)
		open := r.openQuestions()
		if len(open) != 1 || open[0].Person != "chat/bob" {
			r.Fatalf("the undo asks %+v", open)
		}
		if got := r.press(claybot.User("chat", "room", "ann"), open[0].ID, "approve"); got != refusal {
			r.Errorf("ann is told %+v", got)
		}
		if got := r.press(claybot.User("chat", "room", "bob"), open[0].ID, "approve"); !got.OK {
			r.Errorf("bob is told %+v", got)
		}
	})
}
