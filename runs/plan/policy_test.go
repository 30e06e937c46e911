package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

// Which steps ask, by mode and risk.
func TestWhoAsks(t *testing.T) {
	all := steps(step("look", "look", "1"), step("put", "put", "2"), step("pay", "pay", "3"), step("mail", "mail", "4"),
		`{"id": "said", "tool": "put", "args": {"word": "5"}, "risk": "high"}`, `{"id": "lied", "tool": "pay", "args": {"word": "6"}, "risk": "low"}`)
	for name, x := range map[string]struct {
		policy plan.Policy
		always []string
		asked  string
	}{
		"approve":        {plan.Policy{}, nil, "pay mail said lied"},
		"auto":           {plan.Policy{Mode: plan.ModeAuto}, nil, "mail"},
		"a rule":         {plan.Policy{Mode: plan.ModeAuto, Approve: []string{"l*"}}, nil, "look mail"},
		"always":         {plan.Policy{Mode: plan.ModeAuto}, []string{"mail"}, ""},
		"always, pay":    {plan.Policy{}, []string{"pay", "mail"}, "said"},
		"two must agree": {plan.Policy{Mode: plan.ModeAuto, Approvals: 2, Approvers: []string{"web/ann", "web/bob"}}, []string{"mail"}, "mail mail"},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			c := config(thinks(all), h.set(t), x.policy)
			c.Approved = func(claybot.Agent) []string { return x.always }
			var asked []string
			err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
				asked = append(asked, q.Key)
				a := value("true")
				if len(q.Approvers) > 0 {
					a.By = q.Approvers[0]
				}
				return a
			})
			if err != nil || strings.Join(asked, " ") != x.asked || len(h.words) != 6 {
				t.Errorf("%v, asked %q, did %q", err, asked, h.words)
			}
			var risky []string
			for _, st := range runs.PlanOf(d.events).Steps {
				if st.Risk == "high" {
					risky = append(risky, st.ID)
				}
			}
			if got := strings.Join(risky, " "); !strings.HasSuffix(got, "pay mail said lied") {
				t.Errorf("of high risk: %s", got)
			}
		})
	}
}

func TestApprovals(t *testing.T) {
	all := steps(step("a", "pay", "1"), step("b", "put", "2", "a"), step("c", "put", "3", "b"), step("d", "pay", "4"))
	denied := func(reason string) claybot.Answer {
		return claybot.Answer{Value: json.RawMessage("false"), By: "web/ann", Reason: reason}
	}
	for name, x := range map[string]struct {
		a, d    claybot.Answer
		did     []string
		skipped string
	}{
		"all":           {value("true"), value("true"), []string{"pay 1", "put 2", "put 3", "pay 4"}, ""},
		"one":           {value("true"), denied(""), []string{"pay 1", "put 2", "put 3"}, "d: not approved"},
		"a reason":      {denied("too\ndear *now*"), value("true"), []string{"pay 4"}, "a: not approved: too\ndear *now*|b: a was not run|c: b was not run"},
		"in time":       {claybot.Answer{Value: json.RawMessage("false"), Via: claybot.ViaDefault}, value("true"), []string{"pay 4"}, "a: not approved in time|b: a was not run|c: b was not run"},
		"no value":      {claybot.Answer{}, value("true"), []string{"pay 4"}, "a: not approved in time|b: a was not run|c: b was not run"},
		"odd value":     {value(`"yes"`), value("true"), []string{"pay 4"}, "a: not approved|b: a was not run|c: b was not run"},
		"none":          {denied(""), denied(""), nil, "a: not approved|b: a was not run|c: b was not run|d: not approved"},
		"for a session": {claybot.Answer{Value: json.RawMessage("true"), Scope: claybot.ApproveSession}, denied(""), []string{"pay 1", "put 2", "put 3"}, "d: not approved"},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			g := plan.New(config(thinks(all), h.set(t), plan.Policy{}))
			err := d.run(t, g, func(q claybot.Question) claybot.Answer {
				return map[string]claybot.Answer{"a": x.a, "d": x.d}[q.Key]
			})
			if err != nil || !slices.Equal(h.words, x.did) {
				t.Errorf("%v, did %q", err, h.words)
			}
			var skipped []string
			for _, k := range d.output(t).Skipped {
				skipped = append(skipped, k.Step+": "+k.Why)
			}
			if got := strings.Join(skipped, "|"); got != x.skipped {
				t.Errorf("skipped %s, want %s", got, x.skipped)
			}
			if len(x.did) == 0 && !strings.HasPrefix(d.said(), "Nothing was run.\n\nNot run:\n- a (pay): not approved") {
				t.Errorf("said %s", d.said())
			}
			if len(x.did) > 0 && len(skipped) > 0 && !strings.HasPrefix(d.said(), "All is done.\n\nNot run:\n- ") {
				t.Errorf("said %s", d.said())
			}
			if strings.Contains(d.said(), "*now*") {
				t.Errorf("a reason is read as Markdown: %s", d.said())
			}
			for _, st := range runs.PlanOf(d.events).Steps {
				if st.Status != runs.StepOK && st.Status != runs.StepSkipped {
					t.Errorf("the page shows %s as %s", st.ID, st.Status)
				}
			}
			d.valid(t)
		})
	}
}

// What a person has approved for the session is asked no more until the reset.
func TestGrantedForSession(t *testing.T) {
	for name, reset := range map[string]bool{"granted": false, "after a reset": true} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			before := []claybot.Record{
				{Type: claybot.RecordQuestion, Run: "old", Question: &claybot.Question{ID: "q", Type: claybot.QuestionConfirm, Tool: "pay"}},
				{Type: claybot.RecordAnswer, Run: "old", Answer: &claybot.Answer{Question: "q", Value: json.RawMessage("true"), Scope: claybot.ApproveSession}},
			}
			if reset {
				before = append(before, claybot.Record{Type: claybot.RecordReset, By: "user"})
			}
			d.records = append(before, d.records...)
			wait, err := d.pass(t.Context(), plan.New(config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{})))
			if err != nil || (wait != nil) != reset {
				t.Errorf("%v %v, did %q", wait, err, h.words)
			}
		})
	}
}

// An approval counts for what was shown, and for nothing else.
func TestApprovalIsVoid(t *testing.T) {
	for name, change := range map[string]func(q *claybot.Question){
		"another digest":    func(q *claybot.Question) { q.Digest = strings.Repeat("0", 64) },
		"no digest":         func(q *claybot.Question) { q.Digest = "" },
		"the question gone": func(q *claybot.Question) { q.ID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			g := plan.New(config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{}))
			wait, err := d.pass(t.Context(), g)
			if err != nil || wait == nil {
				t.Fatal(wait, err)
			}
			d.answer(t, wait, "a", value("true"))
			for i := range d.records {
				if d.records[i].Type == claybot.RecordQuestion {
					change(d.records[i].Question)
				}
			}
			// The system finds the answer by the id that it made.
			if wait, err = d.pass(t.Context(), g); err != nil || wait != nil {
				t.Fatal(wait, err)
			}
			want := []plan.Skip{{Step: "a", Why: "the approval is void: it was for another action"}}
			if out := d.output(t); len(h.words) > 0 || !slices.Equal(out.Skipped, want) {
				t.Errorf("did %q, put out %+v", h.words, out)
			}
		})
	}
}

// All approvals of a step are for the same action.
func TestApprovalsOfTwoActions(t *testing.T) {
	h, d := newHand(), newDesk("go")
	g := plan.New(config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{Approvals: 2, Approvers: []string{"web/ann", "web/bob"}}))
	for _, by := range []string{"web/ann", "web/bob"} {
		wait, err := d.pass(t.Context(), g)
		if err != nil || wait == nil {
			t.Fatal(wait, err)
		}
		if by == "web/ann" {
			d.question(wait.Questions[0].ID).Digest = strings.Repeat("0", 64)
		}
		d.answer(t, wait, "a", claybot.Answer{Value: json.RawMessage("true"), By: by})
	}
	if wait, err := d.pass(t.Context(), g); err != nil || wait != nil {
		t.Fatal(wait, err)
	}
	if len(h.words) > 0 || !strings.Contains(d.said(), "the approval is void") {
		t.Errorf("did %q, said %s", h.words, d.said())
	}
}

// The arguments of a step that change after its approval make it void.
func TestStepChangesAfterApproval(t *testing.T) {
	h, d := newHand(), newDesk("go")
	g := plan.New(config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{}))
	wait, err := d.pass(t.Context(), g)
	if err != nil || wait == nil {
		t.Fatal(wait, err)
	}
	d.answer(t, wait, "a", value("true"))
	for i, r := range d.records {
		if r.Change != nil && r.Change.Scratch["steps"] != nil {
			d.records[i].Change.Scratch["steps"] = json.RawMessage(strings.Replace(string(r.Change.Scratch["steps"]), `"1"`, `"1000"`, 1))
		}
	}
	if wait, err = d.pass(t.Context(), g); err != nil || wait != nil {
		t.Fatal(wait, err)
	}
	if len(h.words) > 0 || !strings.Contains(d.said(), "the approval is void") {
		t.Errorf("did %q, said %s", h.words, d.said())
	}
}

// An action that is too long to read cannot be approved.
func TestApprovalTooLong(t *testing.T) {
	h, d := newHand(), newDesk("go")
	if err := d.run(t, plan.New(config(thinks(steps(step("a", "pay", strings.Repeat("x", 30_000)))), h.set(t), plan.Policy{})), nil); err != nil {
		t.Fatal(err)
	}
	if len(h.words) > 0 || !strings.Contains(d.said(), "not approved: the action is longer than") {
		t.Errorf("did %q, said %s", h.words, d.said())
	}
}

func TestQuorum(t *testing.T) {
	three := []string{"web/ann", "web/bob", "web/cyd"}
	for name, x := range map[string]struct {
		approvers []string
		by        []string // of each round
		no        int      // the round that denies
		did       bool
		want      string
		rounds    int
	}{
		"two agree":     {three, []string{"web/ann", "web/cyd"}, -1, true, "All is done.", 2},
		"the first no":  {three, []string{"web/ann"}, 0, false, "a (pay): not approved", 1},
		"the second no": {three, []string{"web/ann", "web/bob"}, 1, false, "a (pay): not approved", 2},
		"one twice":     {three, []string{"web/ann", "web/ann", "web/bob"}, -1, true, "All is done.", 3},
		"one again":     {three, []string{"web/ann", "web/ann", "web/ann", "web/ann", "web/ann"}, -1, false, "not approved by 2 different people", 4},
		"too few":       {[]string{"web/ann"}, nil, -1, false, "not approved: it needs the approvals of 2 different people, and 1 may give one", 0},
		"no approvers":  {nil, nil, -1, false, "not approved: this rule names a quorum but no approvers: set approvers", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			g := plan.New(config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{Approvals: 2, Approvers: x.approvers}))
			round := 0
			err := d.run(t, g, func(q claybot.Question) claybot.Answer {
				a := claybot.Answer{Value: json.RawMessage("true"), By: x.by[round]}
				if round == x.no {
					a.Value = json.RawMessage("false")
				}
				if q.Need != 2 || len(q.ApprovedBy) != min(round, 1) {
					t.Errorf("round %d says that %q of %d have approved it", round, q.ApprovedBy, q.Need)
				}
				if round > 0 && slices.Contains(q.Approvers, x.by[0]) {
					t.Errorf("round %d asks %q", round, q.Approvers)
				}
				round++
				return a
			})
			if err != nil || round != x.rounds || (len(h.words) == 1) != x.did || !strings.Contains(d.said(), x.want) {
				t.Errorf("%v, %d rounds, did %q, said %s", err, round, h.words, d.said())
			}
		})
	}
}

func TestHeldBack(t *testing.T) {
	all := `{"steps": [
		{"id": "a", "tool": "look", "what": "look *around*", "costEstimate": 0.4},
		{"id": "b", "tool": "pay", "args": {"word": "x"}, "dependsOn": ["a"], "costEstimate": "$0.35"}], "diff": "It gets paid."}`
	for name, x := range map[string]struct {
		policy plan.Policy
		want   string
		event  claybot.EventType
	}{
		"preview":  {plan.Policy{Mode: plan.ModePreview}, "plans are only shown here", ""},
		"odd mode": {plan.Policy{Mode: "whatever"}, "plans are only shown here", ""},
		"budget":   {plan.Policy{Budget: 749_999}, "it may cost $0.75, and the budget is $0.75", claybot.EventBudgetReached},
		"less":     {plan.Policy{Budget: 500_000}, "it may cost $0.75, and the budget is $0.50", claybot.EventBudgetReached},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			b := thinks(all)
			if err := d.run(t, plan.New(config(b, h.set(t), x.policy)), nil); err != nil {
				t.Fatal(err)
			}
			want := "It gets paid.\n\nThe plan:\n- a (look: look \\*around\\*; about $0.40)\n- b (pay; high risk; after a; about $0.35)\n\nNothing was run: " + x.want + "."
			if d.said() != want || len(h.words) > 0 || b.asked(llm.PlanSummaryRequest) != 0 {
				t.Errorf("did %q, said %s", h.words, d.said())
			}
			if d.path() != "classify planner confirm summarize" || x.event != "" && d.count(x.event) != 1 {
				t.Errorf("went %s", d.path())
			}
		})
	}
	h, d := newHand(), newDesk("go")
	if err := d.run(t, plan.New(config(thinks(all), h.set(t), plan.Policy{Mode: plan.ModeAuto, Budget: 750_000})), nil); err != nil || len(h.words) != 2 {
		t.Errorf("within the budget: %v, did %q", err, h.words)
	}
}

func TestAllowed(t *testing.T) {
	for name, x := range map[string]struct {
		policy plan.Policy
		tools  []string // of the intent
		ok     bool
	}{
		"no limits":    {plan.Policy{}, nil, true},
		"allowed":      {plan.Policy{Allow: []string{"m*", "x"}}, nil, true},
		"not allowed":  {plan.Policy{Allow: []string{"p*"}}, nil, false},
		"denied":       {plan.Policy{Allow: []string{"mail"}, Deny: []string{"*"}}, nil, false},
		"its scope":    {plan.Policy{Scopes: []string{"people"}}, nil, true},
		"other scopes": {plan.Policy{Scopes: []string{"files"}}, nil, false},
		"broken glob":  {plan.Policy{Allow: []string{"[", "mail"}}, nil, true},
		"intent":       {plan.Policy{}, []string{"ma?l"}, true},
		"other intent": {plan.Policy{}, []string{"put"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, d := newHand(), newDesk("go")
			x.policy.Mode = plan.ModeAuto
			text := steps(step("a", "mail", "1"))
			b := thinks(text, text)
			b.replies[llm.ClassifyRequest] = []string{`{"intent": "it"}`}
			c := config(b, h.set(t), x.policy)
			c.Approved = func(claybot.Agent) []string { return []string{"mail"} }
			c.Intents = func(claybot.Agent) []plan.Intent { return []plan.Intent{{Name: "it", Tools: x.tools}} }
			err := d.run(t, plan.New(c), nil)
			if (err == nil) != x.ok || (len(h.words) == 1) != x.ok {
				t.Errorf("%v, did %q", err, h.words)
			}
		})
	}
}

// A bubble begins at midnight UTC.
func TestQuietHours(t *testing.T) {
	for name, x := range map[string]struct {
		quiet  plan.Quiet
		zone   *time.Location
		at     time.Duration // after midnight UTC
		say    string        // to the question; empty: nothing, until it expires
		asked  bool
		ran    time.Duration // after the beginning; below 0: never
		said   string
		failed bool
	}{
		"plan only":           {plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietPlanOnly}, nil, 0, "", false, -1, "Nothing was run: it is quiet until 07:00.", false},
		"blocked":             {plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietBlock}, nil, 23 * time.Hour, "", false, -1, "It is quiet until 07:00, so nothing was run.", true},
		"unknown word":        {plan.Quiet{From: 22 * 60, To: 7 * 60, What: "x"}, nil, 0, "", false, -1, "It is quiet until 07:00, so nothing was run.", true},
		"deferred":            {plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietDefer}, nil, 23 * time.Hour, "", true, 8 * time.Hour, "All is done.", false},
		"run now":             {plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietDefer}, nil, 0, "true", true, 0, "All is done.", false},
		"dropped":             {plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietDefer}, nil, 0, "false", true, -1, "Nothing was run: you did not want it during quiet hours.", false},
		"before":              {plan.Quiet{From: 60, To: 120, What: plan.QuietBlock}, nil, 59 * time.Minute, "", false, 0, "All is done.", false},
		"at the beginning":    {plan.Quiet{From: 60, To: 120, What: plan.QuietBlock}, nil, time.Hour, "", false, -1, "It is quiet until 02:00", true},
		"at the end":          {plan.Quiet{From: 60, To: 120, What: plan.QuietBlock}, nil, 2 * time.Hour, "", false, 0, "All is done.", false},
		"no time at all":      {plan.Quiet{From: 60, To: 60, What: plan.QuietBlock}, nil, time.Hour, "", false, 0, "All is done.", false},
		"where the person is": {plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietDefer}, time.FixedZone("", 9*3600), 13 * time.Hour, "", true, 9 * time.Hour, "All is done.", false},
		"not quiet there":     {plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietDefer}, time.FixedZone("", 9*3600), 0, "", false, 0, "All is done.", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(x.at)
				began := time.Now()
				h, d := newHand(), newDesk("go")
				c := config(thinks(steps(step("a", "put", "1"))), h.set(t), plan.Policy{Mode: plan.ModeAuto, Quiet: &x.quiet})
				c.Zone = func(claybot.Agent) *time.Location { return x.zone }
				asked := false
				err := d.run(t, plan.New(c), func(q claybot.Question) claybot.Answer {
					asked = true
					if q.Default != "yes" || q.Type != claybot.QuestionBoolean || len(h.words) > 0 {
						t.Errorf("asked %+v", q)
					}
					if x.say != "" {
						return value(x.say)
					}
					time.Sleep(time.Until(q.Expires.Time()))
					return claybot.Answer{Value: json.RawMessage("true"), Via: claybot.ViaDefault}
				})
				if (err != nil) != x.failed || asked != x.asked || !strings.Contains(d.said(), x.said) {
					t.Errorf("%v, asked %v, said %s", err, asked, d.said())
				}
				if took := time.Since(began); (len(h.words) == 1) != (x.ran >= 0) || x.ran >= 0 && took != x.ran {
					t.Errorf("did %q after %s", h.words, took)
				}
				switched := 0
				if x.quiet.What == plan.QuietPlanOnly {
					switched = 1
				}
				if n := d.count(claybot.EventPolicySwitched); n != switched {
					t.Errorf("%d changes told", n)
				}
			})
		})
	}
}

// An approval that comes in the next night waits for that one's end, too.
func TestQuietAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d := newHand(), newDesk("go")
		quiet := &plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietDefer}
		var asked []string
		err := d.run(t, plan.New(config(thinks(steps(step("a", "pay", "1"))), h.set(t), plan.Policy{Quiet: quiet})), func(q claybot.Question) claybot.Answer {
			asked = append(asked, q.Key)
			if q.Key == "a" {
				time.Sleep(23 * time.Hour)
			}
			return value("true")
		})
		if err != nil || !slices.Equal(asked, []string{"run_now", "a", "run_now"}) || len(h.words) != 1 {
			t.Errorf("%v, asked %q, did %q", err, asked, h.words)
		}
	})
}

// No person is there to say that it may be loud.
func TestQuietNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d := newHand(), newDesk("go")
		d.nobody = true
		quiet := &plan.Quiet{From: 22 * 60, To: 7 * 60, What: plan.QuietDefer}
		e := failure(t, d.run(t, plan.New(config(thinks(steps(step("a", "put", "1"))), h.set(t), plan.Policy{Quiet: quiet})), nil))
		if !strings.HasPrefix(e.Say, "It is quiet until 07:00") || len(h.words) > 0 {
			t.Errorf("said %s", e.Say)
		}
	})
}

// People read what the steps of a plan do in the words of approvals, not the names of claybot's
// tools.
func TestStepsInWords(t *testing.T) {
	all := steps(step("a", "write_file", "1"), step("b", "put", "2", "a"))
	for lang, want := range map[texts.Language][2]string{
		"":           {"The plan:\n- a (writing or replacing a file; high risk)\n- b (put; after a)", "Not run:\n- a (writing or replacing a file): not approved"},
		texts.German: {"Der Plan:\n- a (eine Datei schreiben oder ersetzen; hohes Risiko)\n- b (put; nach a)", "Nicht ausgeführt:\n- a (eine Datei schreiben oder ersetzen): nicht genehmigt"},
	} {
		for i, mode := range []plan.Mode{plan.ModePreview, plan.ModeApprove} {
			h, d := newHand(), newDesk("go")
			d.voice.Language = lang
			write := tools.New(spec("write_file", tools.Once), h.act("write_file", tools.Once, nil))
			err := d.run(t, plan.New(config(thinks(all), h.set(t, write), plan.Policy{Mode: mode})), func(claybot.Question) claybot.Answer { return value("false") })
			if err != nil || !strings.Contains(d.said(), want[i]) {
				t.Errorf("%v, said %s, want %s", err, d.said(), want[i])
			}
		}
	}
}

// A person who speaks German reads no English of a plan; what agents and programs read stays English.
func TestGerman(t *testing.T) {
	all := steps(step("a", "pay", "1"), step("b", "put", "2", "a"))
	h, d := newHand(), newDesk("go")
	d.voice.Language = texts.German
	err := d.run(t, plan.New(config(thinks(all), h.set(t), plan.Policy{})), func(q claybot.Question) claybot.Answer {
		if !strings.HasPrefix(q.Text, "**Diese Aktion genehmigen: pay**") || !strings.Contains(q.Text, "\nGrund: Es ist a des Plans") {
			t.Errorf("asked %q", q.Text)
		}
		return claybot.Answer{Value: json.RawMessage("false"), By: "web/ann", Reason: "zu teuer"}
	})
	if err != nil || !strings.HasPrefix(d.said(), "Es ist nichts geschehen.\n\nNicht ausgeführt:\n- a (pay): nicht genehmigt: zu teuer\n- b (put): a wurde nicht ausgeführt") {
		t.Errorf("%v, said %s", err, d.said())
	}
	if k := d.output(t).Skipped; len(k) != 2 || k[0].Why != "not approved: zu teuer" || k[1].Why != "a was not run" {
		t.Errorf("skipped %+v", k)
	}
	h, d = newHand(), newDesk("go")
	d.voice.Language = texts.German
	err = d.run(t, plan.New(config(thinks(all), h.set(t), plan.Policy{Mode: plan.ModePreview})), nil)
	if want := "Things change.\n\nDer Plan:\n- a (pay; hohes Risiko)\n- b (put; nach a)\n\nEs ist nichts geschehen: hier werden Pläne nur gezeigt."; err != nil || d.said() != want {
		t.Errorf("%v, said %s", err, d.said())
	}
}
