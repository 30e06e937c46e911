package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/web"
)

func TestViewPlan(t *testing.T) {
	planned := runs.Planned("r", []runs.PlannedStep{{ID: "a", Tool: "read"}, {ID: "b", Tool: "pay", Risk: "high", CostMicroUSD: 7}}, "the diff", "approve")
	skipped := runs.StepEnded("r", "b", "pay", 0, "not approved")
	for _, tt := range []struct {
		name   string
		events []claybot.Event
		result string
		want   string
	}{
		{"nothing", nil, ``, "none"},
		{"no plan", nil, `{"screens":[]}`, "none"},
		{"a plan", []claybot.Event{planned}, ``, "the diff 0/2 7: a to do, b to do"},
		{"a result of another kind", []claybot.Event{planned}, `[1,2]`, "the diff 0/2 7: a to do, b to do"},
		{"parts that are wrong", []claybot.Event{planned}, `{"summary":{"x":1},"commits":"none","skipped":[7,{"step":"b"}]}`, `the diff 0/2 7: a to do, b to do = {"x":1}`},
		{
			"at work",
			[]claybot.Event{planned, runs.StepBegan("r", "a", "read", 1)},
			``,
			"the diff 0/2 7: a running, b to do",
		},
		{
			"again",
			[]claybot.Event{planned, runs.StepBegan("r", "a", "read", 1), runs.StepEnded("r", "a", "read", 1, "retry: busy"), runs.StepBegan("r", "a", "read", 2)},
			``,
			"the diff 0/2 7: a retrying (busy), b to do",
		},
		{
			"done",
			[]claybot.Event{planned, runs.StepEnded("r", "a", "read", 1, "ok"), skipped},
			`{"summary":"s","commits":[{"step":"a","tool":"read","text":"found"}],"skipped":[{"step":"b","why":"not approved: too dear"}]}`,
			"the diff 1/2 7: a done -> found, b skipped (not approved: too dear) = s",
		},
		{
			"what takes back names its steps otherwise",
			[]claybot.Event{runs.UndoTold("u", claybot.EventUndoQueued, claybot.Undo{Step: "b", Tool: "pay"}, ""), runs.UndoTold("u", claybot.EventUndoFinished, claybot.Undo{Step: "b", Tool: "pay"}, "")},
			`{"commits":[{"step":"undo-01","tool":"unpay","text":"paid back"}],"skipped":[{"step":"undo-02","why":"late"}]}`,
			" 1/1 0: b done",
		},
		{
			"the events are gone", nil, `{"diff":"d","commits":[{"tool":"none"},{"step":"a","tool":"read","text":"found"}],"skipped":[{"step":"b","why":"late"}],"error":{"message":"broke"}}`,
			"d 1/2 0: a done -> found, b skipped (late) ! broke",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := viewPlan(runs.PlanOf(tt.events), json.RawMessage(tt.result))
			got := "none"
			if v != nil {
				var steps []string
				for _, s := range v.Steps {
					line := s.ID + " " + s.Words()
					if s.Error != "" {
						line += " (" + s.Error + ")"
					}
					if s.Out != "" {
						line += " -> " + s.Out
					}
					steps = append(steps, line)
				}
				got = fmt.Sprintf("%s %d/%d %d: %s", v.Diff, v.Done, len(v.Steps), v.Cost, strings.Join(steps, ", "))
				if v.Summary != "" {
					got += " = " + v.Summary
				}
				if v.Error != "" {
					got += " ! " + v.Error
				}
			}
			if got != tt.want {
				t.Errorf("the plan is\n%s, want\n%s", got, tt.want)
			}
		})
	}
}

func TestStepInput(t *testing.T) {
	for in, want := range map[string]string{
		``: "", `{}`: "", `null`: "", ` { } `: "", `{"a":"\u003cb\u003e & 1e400"}`: `{"a":"<b> & 1e400"}`, `{"n":12345678901234567890.10}`: `{"n":12345678901234567890.10}`, `{broken`: "{broken",
	} {
		if got := (planStep{StepProgress: runs.StepProgress{PlannedStep: runs.PlannedStep{Args: json.RawMessage(in)}}}).Input(); got != want {
			t.Errorf("%s is shown as %s, want %s", in, got, want)
		}
	}
}

func TestViewExplored(t *testing.T) {
	for in, want := range map[string]string{
		``: "none", `null`: "none", `[]`: "none", `{"screens":[]}`: "none", `{"commits":[]}`: "none",
		`{"screens":[{"id":"s1"}]}`: "0 s1", `{"map":"f1"}`: "0 /ui/agents/a%2Fb/pictures/f1",
		`{"map":"../x","screens":[{"id":"s1","title":"Home","file":"p"},{"id":"s2"}],"transitions":[{"from":"s1","action":"a7","label":"click","to":"s2"},{"from":"s2","action":{"id":"back"},"to":"s9"}],"deadEnds":["s2",{"id":"s3"}],"errors":[5,{"screen":"s1","text":"500"}],"iterations":9}`: "9 /ui/agents/a%2Fb/pictures/..%2Fx Home:/ui/agents/a%2Fb/pictures/p s2! Home-click-s2 s2-back-s9 dead s2 s3 errors 5 Home: 500",
		`{"screens":[{"id":"s1"},7],"iterations":"many"}`: "0 s1 ",
	} {
		v := viewExplored(claybot.Run{Agent: "a/b"}, json.RawMessage(in))
		got := "none"
		if v != nil {
			words := []string{fmt.Sprint(v.Iterations)}
			if v.Map != "" {
				words = append(words, v.Map)
			}
			for _, s := range v.Screens {
				word := s.Name()
				if s.Picture != "" {
					word += ":" + s.Picture
				}
				if s.Dead {
					word += "!"
				}
				words = append(words, word)
			}
			for _, w := range v.Transitions {
				words = append(words, string(w.From+"-"+w.Action+"-"+w.To))
			}
			if len(v.DeadEnds) > 0 {
				words = append(append(words, "dead"), v.DeadEnds...)
			}
			if len(v.Errors) > 0 {
				words = append(append(words, "errors"), v.Errors...)
			}
			got = strings.Join(words, " ")
		}
		if got != want {
			t.Errorf("%s is shown as %q, want %q", in, got, want)
		}
	}
	many := exploredResult{}
	raw, _ := json.Marshal(map[string]any{"screens": slices.Repeat([]map[string]any{{"id": "s"}}, 500), "transitions": slices.Repeat([]transition{{}}, 500), "deadEnds": slices.Repeat([]string{"d"}, 500)})
	if err := json.Unmarshal(raw, &many); err != nil {
		t.Fatal(err)
	}
	if v := viewExplored(claybot.Run{}, raw); len(v.Screens) != screenRows || v.MoreScreens != 300 || len(v.Transitions) != transitionRows || v.MoreTransitions != 300 || len(v.DeadEnds) != troubleRows || v.Counts.Screens != 500 {
		t.Errorf("%d screens, %d ways, %d dead ends are shown", len(v.Screens), len(v.Transitions), len(v.DeadEnds))
	}
}

// What is shown of an approval is all of it, and nothing in it hides.
func TestExact(t *testing.T) {
	for in, want := range map[string]string{
		"": "",
		"plain\ntext – Größe 日本 שלום": "plain\ntext – Größe 日本 שלום",
		"a\tb\r\n":                   "a[U+0009]b[U+000D]\n",
		"\u202egnp.exe\u202c":        "[U+202E]gnp.exe[U+202C]",
		"a\u200bb\ufeff\u00ad\u2060": "a[U+200B]b[U+FEFF][U+00AD][U+2060]",
		"nb\u00a0sp\u2003em\u2028ls": "nb[U+00A0]sp[U+2003]em[U+2028]ls",
		"\x1b[2J\x00\x7f":            "[U+001B][2J[U+0000][U+007F]",
		"fill\u3164er\u2800":         "fill[U+3164]er[U+2800]",
		"tag\U000e0041":              "tag[U+E0041]",
		"bad \xff\xfe utf-8 \ufffd":  "bad [\\xFF][\\xFE] utf-8 \ufffd",
	} {
		if got := exact(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

func FuzzExact(f *testing.F) {
	for _, x := range hostileTexts {
		f.Add(x)
		f.Add("Do it:\n```\n" + x + "\n```")
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := exact(text)
		if !utf8.ValidString(got) {
			t.Fatalf("%q", got)
		}
		for _, r := range got {
			if r != '\n' && (!unicode.IsGraphic(r) || unicode.IsSpace(r) && r != ' ') {
				t.Fatalf("%q hides %U", got, r)
			}
		}
		if exact(got) != got {
			t.Fatalf("%q is shown in two ways", text)
		}
		// An approval is taken apart only where nothing is lost.
		a := asked{OpenQuestion: storage.OpenQuestion{Question: claybot.Question{Text: text}}}
		lead, actions, about, ok := a.parts()
		whole := lead + fence + strings.Join(actions, fence+tools.MoreArguments+fence) + "\n```"
		if about != nil {
			whole += "\n" + strings.Join(about, "\n")
		}
		first, rest, _ := strings.Cut(got, "\n")
		if first = strings.TrimSuffix(strings.TrimPrefix(first, "**"), "**"); ok && whole != first+"\n"+rest {
			t.Fatalf("%q is taken apart into %q, %q and %q", text, lead, actions, about)
		}
		if !ok && strings.Join(a.Actions(), "") != got {
			t.Fatalf("%q is shown as %q", text, a.Actions())
		}
	})
}

func TestApprovalParts(t *testing.T) {
	q, err := tools.Approval(claybot.Agent{ID: "a"}, "", tools.Spec{}, claybot.ToolCall{}, tools.Grounds{})
	if err == nil {
		t.Errorf("no tool can be approved: %+v", q)
	}
	bare := asked{OpenQuestion: storage.OpenQuestion{Question: claybot.Question{Tool: "x", Text: "**Do it**\nWhy: so."}}}
	if bare.Lead() != "Do it" || len(bare.Actions()) > 0 || !reflect.DeepEqual(bare.About(), [][]string{{"Why: so."}}) {
		t.Errorf("without arguments it is shown as %q, %q and %q", bare.Lead(), bare.Actions(), bare.About())
	}
	for _, tt := range []struct {
		text, lead string
		actions    []string
		about      [][]string
	}{
		{"Do it:\n```\nrm -rf\n```", "Do it:", []string{"rm -rf"}, nil},
		{"**Run this?**\n```\nrm -rf\n```\nAsked by `Ann` (x).\nWhy: so.", "Run this?", []string{"rm -rf"}, [][]string{{"Asked by ", "Ann", " (x)."}, {"Why: so."}}},
		{"Run this?\n```\nrm\n```\nwith\n```\n{}\n```\nWhy: so.", "Run this?", []string{"rm", "{}"}, [][]string{{"Why: so."}}},
		{"Run this?\n```\nrm\n```\nor\n```\n{}\n```", "", []string{"Run this?\n```\nrm\n```\nor\n```\n{}\n```"}, nil},
		{"Do it:\n```\n```", "", []string{"Do it:\n```\n```"}, nil},
		{"plain", "", []string{"plain"}, nil},
		{"two\nlines\n```\nx\n```", "", []string{"two\nlines\n```\nx\n```"}, nil},
		{"Do it:\n```\nx\n```\n```\ny\n```", "", []string{"Do it:\n```\nx\n```\n```\ny\n```"}, nil},
		{"Do\u200b it:\n```\nx\n```", "", []string{"Do[U+200B] it:\n```\nx\n```"}, nil},
		{"", "", []string{""}, nil},
	} {
		a := asked{OpenQuestion: storage.OpenQuestion{Question: claybot.Question{Text: tt.text}}}
		if a.Lead() != tt.lead || !slices.Equal(a.Actions(), tt.actions) || !reflect.DeepEqual(a.About(), tt.about) {
			t.Errorf("%q is shown as %q, %q and %q", tt.text, a.Lead(), a.Actions(), a.About())
		}
	}
}

// The field for other arguments hides nothing, and is the same JSON.
func TestEditable(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "",
		"{":                                    "",
		`{"a":1}`:                              "{\n  \"a\": 1\n}",
		"{\"a\":\"x\u202ey\u00a0\U000e0041\"}": "{\n  \"a\": \"x\\u202ey\\u00a0\\udb40\\udc41\"\n}",
	} {
		a := asked{OpenQuestion: storage.OpenQuestion{Question: claybot.Question{Args: args}}}
		if got := a.Editable(); got != want {
			t.Errorf("%q is %q, want %q", args, got, want)
		}
	}
}

func TestSaid(t *testing.T) {
	for query, want := range map[string]string{
		"value=7":                             "{7     } Answered. The run continues.",
		"value=a&value=b":                     "{a, b     } Answered. The run continues.",
		"value=a,+b&value=c&list=1":           `{["a, b","c"]     } Answered. The run continues.`,
		"list=1":                              "{     } Answered. The run continues.",
		"verdict=approve&value=deny&reason=x": "{approve     } Approved. The run continues.",
		"verdict=approve&scope=always":        "{approve     } Approved. The run continues.",
		"verdict=deny&value=approve":          "{deny     } Denied. The run continues without it.",
		"verdict=edit&args=+{}+&value=x":      "{approve     {}} Approved with your arguments. The run continues.",
		"verdict=edit&args=+":                 "refused",
		"verdict=Deny":                        "refused",
		"verdict=%20":                         "refused",
		"verdict=deny&reason=" + strings.Repeat("x", 501): "refused",
	} {
		f, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		s, words, err := answerIn(f)
		got := fmt.Sprintf("{%s %s %s %s %s %s} %s", s.Text, s.By, s.Via, s.Reason, s.Scope, s.Args, words)
		if err != nil {
			got = "refused"
			if p, ok := errors.AsType[*web.Problem](err); !ok || p.Status != http.StatusBadRequest || !reflect.ValueOf(s).IsZero() {
				t.Errorf("%.60s: %v, %+v", query, err, s)
			}
		}
		if got != want {
			t.Errorf("%.60s is %s, want %s", query, got, want)
		}
	}
}

func TestWordsOf(t *testing.T) {
	said := func(value, reason string) claybot.AgentMessage {
		return claybot.AgentMessage{Answer: &claybot.Result{To: &claybot.Answer{Value: json.RawMessage(value), Reason: reason}}}
	}
	typed := said(`"blue"`, "")
	typed.Text = "Blue, please"
	for _, tt := range []struct {
		message claybot.AgentMessage
		want    string
	}{
		{claybot.AgentMessage{}, ""},
		{claybot.AgentMessage{Text: "hello"}, "hello"},
		{claybot.AgentMessage{Answer: &claybot.Result{Output: "of another agent"}}, ""},
		{typed, "Blue, please"},
		{said(``, ""), ""},
		{said(`null`, ""), ""},
		{said(`"2026-12-01"`, ""), "2026-12-01"},
		{said(`"true"`, ""), "true"},
		{said(`6.5`, ""), "6.5"},
		{said(`["a, b","c"]`, ""), "a, b, c"},
		{said(`[]`, ""), ""},
		{said(`[1,2]`, ""), "[1,2]"},
		{said(`true`, ""), "yes"},
		{said(`false`, ""), "no"},
		{said(`false`, "too dear"), "no: too dear"},
		{said(`{"x":`, ""), `{"x":`},
	} {
		if got := wordsOf(tt.message); got != tt.want {
			t.Errorf("%+v says %q, want %q", tt.message.Answer, got, tt.want)
		}
	}
}
