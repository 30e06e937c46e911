package dashboard_test

import (
	"context"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/questions"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// asks waits until a run has an open question, and returns both.
func (w *works) asks(engine, text string) (claybot.Run, storage.OpenQuestion) {
	w.Helper()
	run := w.ran(w.ask(engine, text), claybot.RunAwaiting)
	open, err := w.system.Questions.Answers.OpenQuestions(w.Context(), run.Agent)
	if err != nil || len(open) != 1 {
		w.Fatalf("%d questions, %v", len(open), err)
	}
	return run, open[0]
}

// A plan is shown with all that a person needs to decide, and what is approved
// is shown exactly.
func TestPlanPage(t *testing.T) {
	w := newWorks(t)
	w.action = hostile[1] + "\u202egnp.exe\u200b\nsecond line"
	w.start()
	run, q := w.asks(claybot.EnginePlan, "write to Ann")
	v := w.visitor()
	page := v.page("/ui/runs/" + string(run.ID))
	w.contains(page, "Ann gets a mail.", "0 of 3 steps done", "about $0.0020", "risky steps need approval", "high risk", "low risk",
		`after <a href="#step-step-01">step-01</a>`, "needs your approval", `href="#question-`+html.EscapeString(q.ID), "<code>send_mail</code>",
		"Approve for this session", "Always", `id="node-confirm"`, `class="node seen waiting now"`, "It waits at confirm.", "Approve this action: send_mail")
	above, _, _ := strings.Cut(page, "Timeline</h2>")
	if strings.Contains(page, hostile[1]) || strings.ContainsAny(above, "\u200b\u202e") {
		t.Error("an action runs as HTML, or hides something")
	}
	for _, path := range []string{"/ui/runs", "/ui/agents/" + string(run.Agent), "/ui/chats/questions?conversation=main", "/ui/runs/questions"} {
		w.contains(v.page(path), "verdict=approve", "verdict=session", "verdict=always", "verdict=deny", `\u202egnp.exe\u200b`)
	}
	v.act(http.MethodPost, "/ui/questions/"+url.PathEscape(q.ID)+"?verdict=approve", url.Values{"reason": {"is of no use here"}})
	w.ran(run.Messages[0], claybot.RunSucceeded)
	page = v.page("/ui/runs/" + string(run.ID))
	w.contains(page, "3 of 3 steps done", "result of step-02", "All of it is <em>done</em>.", "It has come to its end, from summarize.",
		"Side effects", "permanent", "can be undone", "1 side effect can be undone")
	if got := w.carried(); !slices.Equal(got, []string{"step-01", "step-02", "step-03"}) {
		t.Errorf("%v were carried out", got)
	}
	v.refuses(http.MethodPost, "/ui/questions/"+url.PathEscape(q.ID)+"?verdict=deny", nil, http.StatusConflict, "Not possible any more")
}

// What is approved for one action alone is not offered for more, anywhere.
func TestApproveOnce(t *testing.T) {
	w := newWorks(t)
	w.once = true
	w.start()
	run, _ := w.asks(claybot.EnginePlan, "write to Ann")
	v := w.visitor()
	for _, path := range []string{"/ui/runs/" + string(run.ID), "/ui/runs", "/ui/agents/" + string(run.Agent), "/ui/chats/questions?conversation=main", "/ui/runs/questions"} {
		page := v.page(path)
		w.contains(page, "verdict=approve", "verdict=deny")
		if strings.Contains(page, "verdict=session") || strings.Contains(page, "verdict=always") {
			t.Errorf("%s offers more than this action", path)
		}
	}
}

// Verdicts of all kinds reach the run as what they are.
func TestVerdicts(t *testing.T) {
	w := newWorks(t)
	w.start()
	v := w.visitor()
	for _, tt := range []struct {
		name, verdict, reason string
		words                 string
		value                 string
		scope                 claybot.ApprovalScope
		why                   string
	}{
		{"deny", "deny", "  Ann is <i>away</i>. ", "Denied.", "false", "", "Ann is <i>away</i>."},
		{"deny without a reason", "deny", "", "Denied.", "false", "", ""},
		{"once", "approve", "", "Approved.", "true", "", ""},
		{"session", "session", "", "until the next reset", "true", claybot.ApproveSession, ""},
		{"always", "always", "", "Always approved", "true", claybot.ApproveAlways, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.T = t
			v.T = t
			run, q := w.asks(claybot.EnginePlan, "write to Ann")
			path := "/ui/questions/" + url.PathEscape(q.ID)
			v.refuses(http.MethodPost, path+"?verdict=perhaps", nil, http.StatusBadRequest, "Unknown verdict")
			v.refuses(http.MethodPost, path+"?verdict=deny", url.Values{"reason": {strings.Repeat("ä", 501)}}, http.StatusBadRequest, "too long")
			v.refuses(http.MethodPost, path, url.Values{"value": {"perhaps"}}, http.StatusBadRequest, "")
			if got := v.act(http.MethodPost, path+"?verdict="+tt.verdict, url.Values{"reason": {tt.reason}}); !strings.Contains(got, tt.words) {
				t.Errorf("it says %q", got)
			}
			ended := w.ran(run.Messages[0], claybot.RunSucceeded)
			now, err := w.system.Questions.Answers.Question(t.Context(), q.ID)
			if err != nil || now.Answer == nil || string(now.Answer.Value) != tt.value || now.Answer.Scope != tt.scope || now.Answer.Reason != tt.why || now.Answer.Via != claybot.ViaWeb {
				t.Errorf("the answer is %+v, %v", now.Answer, err)
			}
			page := v.page("/ui/runs/" + string(ended.ID))
			if tt.verdict == "deny" {
				w.contains(page, `data-status="skipped"`, html.EscapeString(strings.TrimSuffix("not approved: "+tt.why, ": ")), "2 of 3 steps done")
			} else {
				w.contains(page, "3 of 3 steps done")
			}
		})
	}
	w.T, v.T = t, t
	// What was approved for good is in the settings, where it is taken back.
	agent := w.agent(main)
	if got := w.system.Profiles.OwnSettings(agent).Approved; !slices.Equal(got, []string{"send_mail"}) {
		t.Fatalf("approved for good: %v", got)
	}
	settings := "/ui/agents/" + string(agent) + "/settings"
	w.contains(v.page(settings), `name="approved" value="send_mail" checked`, `<option value="plan">plan</option>`, "current: react: acts step by step")
	v.act(http.MethodPost, settings, url.Values{"engine": {"plan"}, "approved": {"send_mail"}, "shown": {"send_mail"}})
	own := w.system.Profiles.OwnSettings(agent)
	if own.Engine != "plan" || !slices.Equal(own.Approved, []string{"send_mail"}) {
		t.Errorf("the settings are %+v", own)
	}
	v.act(http.MethodPost, settings, url.Values{"engine": {""}}) // it was approved after the form was made
	if got := w.system.Profiles.OwnSettings(agent).Approved; len(got) != 1 {
		t.Errorf("a form that does not show it takes it back: %v", got)
	}
	v.act(http.MethodPost, settings, url.Values{"shown": {"send_mail"}})
	if got := w.system.Profiles.OwnSettings(agent); len(got.Approved) != 0 || got.Engine != "" {
		t.Errorf("the settings are %+v", got)
	}
	v.refuses(http.MethodPost, settings, url.Values{"engine": {"dream"}}, http.StatusBadRequest, "Engine: must be one of")
}

// Approving needs the scope approve; approving for good changes a setting, which only an
// admin may.
func TestAlwaysNeedsAdmin(t *testing.T) {
	w := newWorks(t)
	w.start()
	run, q := w.asks(claybot.EnginePlan, "write to Ann")
	token := w.visitor().send(http.MethodPost, "/tokens", "application/json", `{"name":"hand","scope":"approve"}`).body
	operator := &visitor{w.rig, &http.Client{}}
	bearer := []string{"Authorization", "Bearer " + word(token, `"token":"`, `"`)}
	page := operator.do(http.MethodGet, "/ui/runs/"+string(run.ID), nil, bearer...).body
	w.contains(page, "verdict=approve", "verdict=session", "verdict=deny")
	if strings.Contains(page, "verdict=always") {
		t.Error("an operator is offered what he may not do")
	}
	path := "/ui/questions/" + url.PathEscape(q.ID) + "?verdict="
	narrow := []string{"Authorization", "Bearer " + word(w.visitor().send(http.MethodPost, "/tokens", "application/json", `{"name":"narrow","scope":"operate"}`).body, `"token":"`, `"`)}
	if page := operator.do(http.MethodGet, "/ui/runs/"+string(run.ID), nil, narrow...).body; strings.Contains(page, "verdict=") || !strings.Contains(page, "needs the scope approve") {
		t.Error("without the scope approve, the page offers an answer")
	}
	for _, verdict := range []string{"approve", "session", "deny"} {
		if got := operator.do(http.MethodPost, path+verdict, url.Values{}, narrow...); got.code != http.StatusForbidden || !strings.Contains(got.body, "needs the scope approve") {
			t.Errorf("%s without the scope approve = %d %s", verdict, got.code, got.body)
		}
	}
	if got := operator.do(http.MethodPost, path+"always", url.Values{}, bearer...); got.code != http.StatusForbidden || !strings.Contains(got.body, "needs the scope admin") {
		t.Errorf("always = %d %s", got.code, got.body)
	}
	if now, err := w.system.Questions.Answers.Question(t.Context(), q.ID); err != nil || now.Answer != nil {
		t.Errorf("what was refused is the answer %+v, %v", now.Answer, err)
	}
	if got := operator.do(http.MethodPost, path+"session", url.Values{}, bearer...); got.code >= 300 {
		t.Errorf("for the session = %d %s", got.code, got.body)
	}
	w.ran(run.Messages[0], claybot.RunSucceeded)
}

// A run is undone once, by its button; what cannot be undone says why.
func TestUndoPage(t *testing.T) {
	w := newWorks(t)
	w.start()
	v := w.visitor()
	plain := w.ran(w.say("hello"), claybot.RunSucceeded)
	if page := v.page("/ui/runs/" + string(plain.ID)); strings.Contains(page, `id="undo"`) {
		t.Error("a run that did nothing can be undone")
	}
	v.refuses(http.MethodPost, "/ui/runs/"+string(plain.ID)+"/undo", nil, http.StatusBadRequest, "did nothing that could be undone")
	v.refuses(http.MethodPost, "/ui/runs/nothing/undo", nil, http.StatusNotFound, "")
	run, q := w.asks(claybot.EnginePlan, "write to Ann")
	undo := "/ui/runs/" + string(run.ID) + "/undo"
	v.refuses(http.MethodPost, undo, nil, http.StatusBadRequest, "still at work")
	v.act(http.MethodPost, "/ui/questions/"+url.PathEscape(q.ID)+"?verdict=approve", url.Values{})
	w.ran(run.Messages[0], claybot.RunSucceeded)
	if got := v.act(http.MethodPost, undo, url.Values{}); got != "Undoing, newest first." {
		t.Errorf("undo says %q", got)
	}
	undone := w.ran(claybot.MessageID("undo/"+run.ID), claybot.RunSucceeded)
	w.contains(v.page("/ui/runs/"+string(run.ID)), "disabled", `Already undone by <a href="/ui/runs/`+string(undone.ID)+`"`, "A run can be undone once.")
	v.refuses(http.MethodPost, undo, nil, http.StatusBadRequest, "undone already")
	page := v.page("/ui/runs/" + string(undone.ID))
	w.contains(page, `This run undoes <a href="/ui/runs/`+string(run.ID)+`"`, "Undo</h2>", "1 of 2 steps done", "it cannot be taken back", "It is undone.")
	if strings.Contains(page, `id="undo"`) {
		t.Error("an undo can be undone")
	}
	v.refuses(http.MethodPost, "/ui/runs/"+string(undone.ID)+"/undo", nil, http.StatusBadRequest, "cannot be undone")

	// Who may only look has no buttons.
	token := v.send(http.MethodPost, "/tokens", "application/json", `{"name":"eye","scope":"read"}`).body
	reader := &visitor{w.rig, &http.Client{}}
	bearer := []string{"Authorization", "Bearer " + word(token, `"token":"`, `"`)}
	if got := reader.do(http.MethodGet, "/ui/runs/"+string(run.ID), nil, bearer...); got.code != http.StatusOK || strings.Contains(got.body, `id="undo"`) {
		t.Errorf("a reader sees the button: %d", got.code)
	}
	for _, path := range []string{undo, "/ui/questions/" + url.PathEscape(q.ID) + "?verdict=always"} {
		if got := reader.do(http.MethodPost, path, nil, bearer...); got.code != http.StatusForbidden {
			t.Errorf("a reader may POST %s: %d", path, got.code)
		}
	}
}

// An undo that began nothing leaves its button; one that is at work says so, on
// both pages.
func TestUndoAgain(t *testing.T) {
	w := newWorks(t)
	asked, answers := make(chan struct{}), make(chan bool)
	w.allow = func(ctx context.Context) bool {
		select {
		case asked <- struct{}{}:
			return <-answers
		case <-ctx.Done():
			return false
		}
	}
	w.start()
	v := w.visitor()
	run, q := w.asks(claybot.EnginePlan, "write to Ann")
	v.act(http.MethodPost, "/ui/questions/"+url.PathEscape(q.ID)+"?verdict=approve", url.Values{})
	w.ran(run.Messages[0], claybot.RunSucceeded)
	page, button := "/ui/runs/"+string(run.ID), `id="undo" hx-post`
	for try, took := range []bool{false, true} {
		w.contains(v.page(page), button)
		v.act(http.MethodPost, page+"/undo", url.Values{})
		<-asked
		id := claybot.MessageID("undo/" + run.ID)
		if try > 0 {
			id += "/2"
		}
		at := w.ran(id, claybot.RunRunning)
		w.contains(v.page(page), "disabled", `Being undone by <a href="/ui/runs/`+string(at.ID)+`"`)
		w.contains(v.page("/ui/runs/"+string(at.ID)), `This run undoes <a href="`+page+`"`)
		answers <- took
		w.ran(id, claybot.RunSucceeded)
		w.contains(v.page("/ui/runs/"+string(at.ID)), `This run undoes <a href="`+page+`"`)
		if got := v.page(page); strings.Contains(got, button) == took || strings.Contains(got, "Already undone") != took {
			t.Errorf("try %d took back: %v; the page shows otherwise", try+1, took)
		}
	}
}

// What was explored is shown with pictures, which can do nothing.
func TestExploredPage(t *testing.T) {
	w := newWorks(t)
	w.start()
	run := w.ran(w.ask(claybot.EngineExplore, "look around"), claybot.RunSucceeded)
	v := w.visitor()
	page := v.page("/ui/runs/" + string(run.ID))
	pictures := "/ui/agents/" + string(run.Agent) + "/pictures/"
	w.contains(page, "2 screens, 1 transition, 1 dead end", "Stopped: no progress for 5 turns", "500 at /broken", "The end", "dead end",
		"Found <strong>2</strong> screens.", `class="edge taken"`, `<text class="times"`, "&lt;script&gt;")
	if strings.Contains(page, hostile[1]) || strings.Contains(page, hostile[0]) {
		t.Error("what was found is HTML")
	}
	picture := func(id string, head ...string) answer { return v.do(http.MethodGet, pictures+id, nil, head...) }
	drawing := picture(word(page, `map"><img src="`+pictures, `"`))
	shot := picture(word(page, `<li>
  <a href="`+pictures, `"`))
	for _, tt := range []struct {
		got         answer
		kind, body  string
		disposition string
	}{
		{drawing, "image/svg+xml", string(drawn), "attachment; filename=map.svg"},
		{shot, "image/png", string(pixel), ""},
	} {
		h := tt.got.head
		if tt.got.code != http.StatusOK || tt.got.body != tt.body || h.Get("Content-Type") != tt.kind || h.Get("Content-Disposition") != tt.disposition ||
			h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || strings.Contains(h.Get("Content-Security-Policy"), "script") {
			t.Errorf("%s = %d %v", tt.kind, tt.got.code, h)
		}
	}
	// A file that is not a picture is not served here, nor is a file of another run.
	saved, err := w.agents.SaveFile(t.Context(), run.Agent, claybot.FileReference{Name: "x.html", MIMEType: "text/html"}, strings.NewReader("<script>1</script>"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	odd, err := w.agents.SaveFile(t.Context(), run.Agent, claybot.FileReference{Name: "x.svg", MIMEType: "Image/SVG+XML; charset=\""}, strings.NewReader("<svg/>"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for id, code := range map[string]int{saved.ID: 415, odd.ID: 415, "nothing": 404, "..%2f..%2fclaybot.db": 404} {
		if got := picture(id); got.code != code {
			t.Errorf("%s = %d %s, want %d", id, got.code, got.body, code)
		}
	}
	stranger := claybot.User("web", "other", "operator")
	w.post(stranger, claybot.AgentMessage{ID: "o1", Type: claybot.MessageUser, Text: "hello", From: claybot.Sender{UserID: "operator"}})
	other := w.ran("o1", claybot.RunSucceeded).Agent
	mapID := word(page, `map"><img src="`+pictures, `"`)
	if got := v.do(http.MethodGet, "/ui/agents/"+string(other)+"/pictures/"+mapID, nil); got.code != http.StatusNotFound {
		t.Errorf("the picture of another agent = %d", got.code)
	}
	if got := (&visitor{w.rig, &http.Client{}}).do(http.MethodGet, pictures+mapID, nil); got.code != http.StatusUnauthorized {
		t.Errorf("a picture without a login = %d", got.code)
	}
}

// alsoOthers is a desk where others must approve as well.
type alsoOthers struct{ web.Questions }

func (alsoOthers) Lacking(_ claybot.Question, s claybot.Answer) int {
	if s.Text == "approve" {
		return 2
	}
	return 0
}

// Who approves first reads that the run waits for others.
func TestMoreMustApprove(t *testing.T) {
	for verdict, want := range map[string]string{
		"approve": "Approved. The run waits for 2 more approvals from other people.",
		"deny":    "Denied. The run continues without it.",
	} {
		w := newWorks(t)
		w.desk = func(d *web.Backend) { d.Questions = alsoOthers{d.Questions} }
		w.start()
		v := w.visitor()
		_, q := w.asks(claybot.EnginePlan, "write to Ann")
		if got := v.act(http.MethodPost, "/ui/questions/"+url.PathEscape(q.ID)+"?verdict="+verdict, url.Values{}); got != want {
			t.Errorf("%s says %q, want %q", verdict, got, want)
		}
	}
}

// againApproved is a desk whose open question the same person has approved before,
// and where other answers come too late: another person is asked by now.
type againApproved struct{ web.Questions }

func (againApproved) AnswerQuestion(_ context.Context, _ string, s claybot.Answer) error {
	if s.Text == "approve" {
		return questions.ErrApproved
	}
	return storage.ErrState
}

func (d againApproved) Question(ctx context.Context, id string) (storage.OpenQuestion, error) {
	q, err := d.Questions.Question(ctx, id)
	q.Need = 2
	return q, err
}

func (d againApproved) OpenQuestions(ctx context.Context, id claybot.AgentID) ([]storage.OpenQuestion, error) {
	all, err := d.Questions.OpenQuestions(ctx, id)
	for i := range all {
		all[i].ID, all[i].Need, all[i].ApprovedBy = "next", 2, []string{"operator"}
	}
	return all, err
}

// A question says how far it is, and why it takes no second yes nor a late answer.
func TestApproveAgain(t *testing.T) {
	w := newWorks(t)
	w.desk = func(d *web.Backend) { d.Questions = againApproved{d.Questions} }
	w.start()
	v := w.visitor()
	run, q := w.asks(claybot.EnginePlan, "write to Ann")
	w.contains(v.page("/ui/runs/"+string(run.ID)), "1 of 2 approvals")
	at := "/ui/questions/" + url.PathEscape(q.ID) + "?verdict="
	v.refuses(http.MethodPost, at+"approve", nil, http.StatusConflict, "You have already approved this; it still needs another approval.")
	v.refuses(http.MethodPost, at+"deny", nil, http.StatusConflict, "the action now waits for another approval as question next.")
}
