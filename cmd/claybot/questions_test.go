package main

import (
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/web"
)

// Three questions: two that begin alike, one of which is an approval.
const (
	approvalID = "abcdefaaaaaaaaaaaaaaaaaa"
	colourID   = "abcdefbbbbbbbbbbbbbbbbbb"
	otherID    = "zzzzaaaaaaaaaaaaaaaaaaaa"
	quorumID   = "qqqqaaaaaaaaaaaaaaaaaaaa" // that others must approve as well

	approvalJSON = `{"id":"` + approvalID + `","text":"May I send this?\n` + "```" + `\ntool: send\narguments: {\"to\":\"ann\"}\n` + "```" + `","type":"confirm","required":true,"expires":1795309583280,"tool":"send","runId":"r1","agentId":"a1","askedAt":1795309583280}`
	colourJSON   = `{"id":"` + colourID + `","text":"Which colour?","type":"select","options":["red","dark  green"],"required":true,"runId":"r2","agentId":"a2","askedAt":1795309583280}`
	nextID       = "nnnnaaaaaaaaaaaaaaaaaaaa" // that an operator has approved before
	nextJSON     = `{"id":"` + nextID + `","text":"May I send this?","type":"confirm","required":true,"tool":"send","toolCallId":"c1","need":2,"approvedBy":["operator"],"runId":"r1","agentId":"a1","askedAt":1795309583280}`
	saidYes      = `"answer":{"questionId":"x","value":true,"via":"http","by":"operator"}`
	otherJSON    = `{"id":"` + otherID + `","text":"A \u001b[31mred\u001b[0m one?","type":"boolean","required":true,"runId":"r2","agentId":"a2","askedAt":1795309583280}`
)

func openQuestions() map[string]string {
	taken := `{"questionId":"x","runId":"r1"}`
	return map[string]string{
		"GET /questions":                              `{"questions":[` + approvalJSON + `,` + colourJSON + `,` + otherJSON + `,` + nextJSON + `]}`,
		"GET /questions/" + approvalID:                approvalJSON,
		"GET /questions/" + colourID:                  colourJSON,
		"GET /questions/" + otherID:                   otherJSON,
		"GET /questions/answered":                     strings.Replace(approvalJSON, `"runId"`, `"answer":{"questionId":"x","value":false,"via":"button","by":"telegram/1","reason":"too early"},"runId"`, 1),
		"POST /questions/" + approvalID + "/answer":   taken,
		"POST /questions/" + colourID + "/answer":     taken,
		"POST /questions/" + otherID + "/answer":      taken,
		"POST /questions/bbbb%2Fc/answer":             taken,
		"GET /questions/" + quorumID:                  strings.ReplaceAll(approvalJSON, approvalID, quorumID),
		"GET /questions/" + nextID:                    nextJSON,
		"GET /questions/wasfirst":                     strings.NewReplacer(nextID, "wasfirst", `"approvedBy":["operator"]`, saidYes).Replace(nextJSON),
		"GET /questions/waslast":                      strings.NewReplacer(nextID, "waslast", `"r1"`, `"r9"`, `"approvedBy":["operator"]`, saidYes).Replace(nextJSON),
		"POST /questions/" + nextID + "/answer":       `404{"error":{"message":"You have already approved this; it still needs another approval."}}`,
		"POST /questions/" + quorumID + "/answer":     strings.Replace(taken, "}", `,"more":1}`, 1),
		"GET /agents/runs":                            `{"runs":[{"runId":"cmwqaaaa"},{"runId":"cmwqbbbb"}]}`,
		"POST /agents/runs/cmwqaaaa/undo":             `{"runId":"cmwqcccc","agentId":"a1","messageId":"m","state":"PENDING","stream":"s"}`,
		"POST /agents/runs/cmwqbbbb/undo":             `404{"error":{"message":"That run did nothing that could be undone."}}`,
		"GET /agents/runs/cmwqaaaa/plan":              `{"runId":"cmwqaaaa","state":"AWAITING","steps":[{"id":"s1","tool":"look","args":{},"risk":"low","status":"failed","attempts":2,"error":"no\nnetwork"},{"id":"s2","tool":"send","what":"send it","args":{},"risk":"high","status":"waiting","attempts":0,"questionId":"q9"}],"diff":"a letter","mode":"approve","graph":{"current":"confirm","nodes":[],"edges":[]}}`,
		"GET /agents/runs/cmwqbbbb/plan":              `{"runId":"cmwqbbbb","state":"SUCCEEDED","steps":[],"graph":{"nodes":[],"edges":[]}}`,
		"GET /graphs":                                 `{"graphs":[{"name":"plan","mermaid":"flowchart TD\n    a --> b\n"},{"name":"undo","mermaid":"flowchart TD\n    c --> d\n"}]}`,
		"POST /questions/nothingatallaaaaaaaa/answer": `404{"error":{"message":"No question with that id.","fix":"GET /questions lists pending questions."}}`,
	}
}

func TestQuestionsAreListedWhole(t *testing.T) {
	t.Setenv("TZ", "UTC")
	d := openDesk(t, openQuestions())
	_, out, _, _ := d.use("questions")
	for _, want := range []string{
		approvalID + "  confirm, asked by agent a1 in run r1", ", open until ",
		"\n  May I send this?\n  ```\n  tool: send\n  arguments: {\"to\":\"ann\"}\n  ```\n",
		"  claybot approve " + approvalID + ", or claybot deny " + approvalID + "\n\n" + colourID + "  select",
		"  1. red\n  2. dark green\n  claybot answer " + colourID + " VALUE\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Errorf("what an agent wrote reaches the terminal as it is: %q", out)
	}
	d.wantJSON(t, `"questions"`, "questions", "--json")
	d.wantJSON(t, `"confirm"`, "questions", "show", "abcdefa", "--json")
	d.deals(t, []deal{
		{"questions|--agent|a b", exitOK, "GET /questions?agent=a+b", "Which colour?", ""},
		{"questions|show|zzzz", exitOK, "GET /questions|GET /questions/" + otherID, "boolean, asked by", ""},
		{"questions|show|answered", exitOK, "GET /questions|GET /questions/answered", "answered with false by telegram/1 (button), because: too early\n", ""},
		{"questions|show|" + nextID, exitOK, "GET /questions|GET /questions/" + nextID, "  May I send this?\n  1 of 2 approvals\n  claybot approve " + nextID, ""},
		{"questions|show|wasfirst", exitOK, "GET /questions|GET /questions/wasfirst|GET /questions?agent=a1", "  May I send this?\n  answered with true by operator (http)\n  needs another approval, as question " + nextID + "\n", ""},
		{"questions|show|waslast", exitOK, "GET /questions|GET /questions/waslast|GET /questions?agent=a1", "answered with true by operator (http)\n", ""},
		{"questions|show|gone", exitError, "GET /questions|GET /questions/gone", "", "no such thing"},
	})
	empty := openDesk(t, map[string]string{"GET /questions": `{"questions":[]}`})
	empty.deals(t, []deal{{"questions", exitOK, "GET /questions", "No pending questions.\n", ""}})
}

func TestAnswers(t *testing.T) {
	d := openDesk(t, openQuestions())
	list, one := "GET /questions", "|GET /questions/"
	d.deals(t, []deal{
		{"answer|zzzz|yes", exitOK, list + "|POST /questions/" + otherID + `/answer {"value":"yes"}`, "Answered; run r1 resumes", ""},
		{"answer|" + colourID + "|dark green", exitOK, list + "|POST /questions/" + colourID + `/answer {"value":"dark green"}`, "Answered", ""},
		{"answer|abcdefa|deny|--reason|too early|--scope|x", exitOK, list + "|POST /questions/" + approvalID + `/answer {"value":"deny","reason":"too early","scope":"x"}`, "Answered", ""},
		{"answer|zzzz|--|-5", exitOK, list + "|POST /questions/" + otherID + `/answer {"value":"-5"}`, "Answered", ""},
		{"answer|bbbb/c|x", exitOK, list + `|POST /questions/bbbb%2Fc/answer {"value":"x"}`, "Answered", ""},
		{"approve|abcdefa", exitOK, list + one + approvalID + "|POST /questions/" + approvalID + `/answer {"value":"approve"}`, "Approved; run r1 resumes.\n", ""},
		{"approve|abcdefa|--scope|always", exitOK, list + one + approvalID + "|POST /questions/" + approvalID + `/answer {"value":"approve","scope":"always"}`, "Approved", ""},
		{"approve|abcdefa|--args|{\"to\": \"bob\"}", exitOK, list + one + approvalID + "|POST /questions/" + approvalID + `/answer {"value":"approve","args":{"to":"bob"}}`, "Approved", ""},
		{"approve|" + quorumID, exitOK, list + one + quorumID + "|POST /questions/" + quorumID + `/answer {"value":"approve"}`, "Approved; run r1 needs 1 more approval, by another user. claybot questions lists them.\n", ""},
		{"approve|" + nextID, exitError, list + one + nextID + "|POST /questions/" + nextID + `/answer {"value":"approve"}`, "", "You have already approved this; it still needs another approval."},
		{"answer|" + quorumID + "|yes", exitOK, list + "|POST /questions/" + quorumID + `/answer {"value":"yes"}`, "Approved; run r1 needs 1 more approval", ""},
		{"approve|abcdefa|--args|to=bob", exitUsage, list + one + approvalID, "", "--args is not valid JSON"},
		{"deny|abcdefa", exitOK, list + one + approvalID + "|POST /questions/" + approvalID + `/answer {"value":"deny"}`, "Denied; run r1 resumes with the denial.\n", ""},
		{"deny|abcdefa|too|early", exitOK, list + one + approvalID + "|POST /questions/" + approvalID + `/answer {"value":"deny","reason":"too early"}`, "Denied", ""},
		// What is no approval is neither approved nor denied.
		{"approve|abcdefb", exitError, list + one + colourID, "", "does not ask for an approval; answer it with: claybot answer " + colourID},
		{"deny|zzzz|no", exitError, list + one + otherID, "", "does not ask for an approval"},
		// An id that does not say which question is meant answers none.
		{"approve|abcd", exitUsage, list, "", `ID "abcd" is ambiguous: more than one pending question begins with it; give more of it: ` + approvalID + ", " + colourID},
		{"approve|abc", exitUsage, "", "", "too short: give at least 4 characters"},
		{"answer|..|x", exitUsage, "", "", "invalid ID"},
		{"answer||x", exitUsage, "", "", "too short"},
		{"answer|nothingatallaaaaaaaa|x", exitError, list + `|POST /questions/nothingatallaaaaaaaa/answer {"value":"x"}`, "", "No question with that id. claybot questions lists pending questions."},
		{"answer|zzzz", exitUsage, "", "", "value"},
		{"approve", exitUsage, "", "", "question"},
		{"deny", exitUsage, "", "", "question"},
	})
}

func TestUndoAndPlan(t *testing.T) {
	d := openDesk(t, openQuestions())
	list := "GET /agents/runs?limit=500"
	d.deals(t, []deal{
		{"undo|cmwqa", exitOK, list + "|POST /agents/runs/cmwqaaaa/undo", "Run cmwqcccc undoes run cmwqaaaa. Follow it with: claybot runs tail cmwqcccc\n", ""},
		{"undo|cmwqbbbb", exitError, list + "|POST /agents/runs/cmwqbbbb/undo", "", "claybot: That run did nothing that could be undone."},
		{"undo|cmwq", exitUsage, list, "", "more than one run"},
		{"undo|cmw", exitUsage, "", "", "too short"},
		{"undo|..", exitUsage, "", "", "invalid ID"},
		{"undo|elsewhere", exitError, list + "|POST /agents/runs/elsewhere/undo", "", "no such thing"},
		{"undo", exitUsage, "", "", "run"},
		{"runs|plan|cmwqb", exitOK, list + "|GET /agents/runs/cmwqbbbb/plan", "That run has no plan.\n", ""},
		{"runs|plan|cmwqaaaa", exitOK, list + "|GET /agents/runs/cmwqaaaa/plan", "s1    failed   2      low   look           no network\n", ""},
		{"runs|plan|cmwqaaaa", exitOK, list + "|GET /agents/runs/cmwqaaaa/plan", "s2    waiting  0      high  send  send it  approve or deny q9\n", ""},
		{"runs|plan|cmwqaaaa", exitOK, list + "|GET /agents/runs/cmwqaaaa/plan", "Changes: a letter\nMode: approve\nAt: confirm\n", ""},
		{"runs|plan|..", exitUsage, "", "", "invalid ID"},
	})
	d.wantJSON(t, `"current": "confirm"`, "runs", "plan", "cmwqaaaa", "--json")
}

func TestGraphShow(t *testing.T) {
	d := openDesk(t, openQuestions())
	d.deals(t, []deal{
		{"graph|show", exitOK, "GET /graphs", "%% plan\nflowchart TD\n    a --> b\n\n%% undo\nflowchart TD\n    c --> d\n", ""},
		{"graph", exitOK, "GET /graphs", "%% undo\n", ""},
		{"graph|show|undo", exitOK, "GET /graphs", "flowchart TD\n    c --> d\n", ""},
		{"graph|show|Plan", exitError, "GET /graphs", "", `no graph "Plan"; available graphs: plan, undo`},
	})
	_, out, _, _ := d.use("graph", "show", "plan")
	if out != "flowchart TD\n    a --> b\n" {
		t.Errorf("one graph is printed as %q", out)
	}
	none := openDesk(t, map[string]string{"GET /graphs": `{"graphs":[]}`})
	none.deals(t, []deal{{"graph|show", exitError, "GET /graphs", "", "no graph"}})
}

// A daemon and this program draw a graph alike, by name.
func TestDrawAll(t *testing.T) {
	got := web.DrawAll(map[string]runs.Shape{"b": {Start: "x", Edges: map[string][]string{"x": {runs.End}}}, "a": {}})
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" || !strings.Contains(got[1].Mermaid, "x --> END") {
		t.Errorf("drawn %+v", got)
	}
}

func TestEffects(t *testing.T) {
	v := web.RunView{UndoOf: "r0", Undo: []web.EffectView{{Tool: "send", What: "sent\na letter", Can: true}, {Tool: "call", What: "called"}}}
	var got []string
	for _, row := range effects(v) {
		got = append(got, strings.Join(row, " "))
	}
	if want := "undoes r0|did send: sent a letter|did call: called (cannot be undone)"; strings.Join(got, "|") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if effects(web.RunView{}) != nil {
		t.Error("effects out of nothing")
	}
}

func TestAnswerText(t *testing.T) {
	for want, a := range map[string]claybot.Answer{
		`answered with "red" by operator (http)`:                  {Value: []byte(`"red"`), By: "operator", Via: claybot.ViaHTTP},
		`answered with nothing (default)`:                         {Via: claybot.ViaDefault},
		`answered with true by telegram/1 (button), scope always`: {Value: []byte(`true`), By: "telegram/1", Via: claybot.ViaButton, Scope: claybot.ApproveAlways},
	} {
		if got := answerText(a); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestQuestionsNoDaemon(t *testing.T) {
	t.Setenv("CLAYBOT_DATA_DIR", t.TempDir())
	for _, args := range []string{"questions", "questions show abcd", "answer abcd x", "approve abcd", "deny abcd", "undo abcd", "runs plan abcd"} {
		code, out, errs, _ := new(desk).use(strings.Fields(args)...)
		if code != exitError || out != "" || !strings.Contains(errs, "start one with: claybot serve") {
			t.Errorf("claybot %s without a daemon: exit %d, %s%s", args, code, out, errs)
		}
	}
}
