package tools_test

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

var helper = claybot.Agent{ID: "a23456789012345678901234", Descriptor: claybot.Descriptor{Type: claybot.AgentSubagent, Name: "helper"}}

// caught is a tool that takes any object and keeps what it was given.
type caught struct{ args json.RawMessage }

func (c *caught) Spec() tools.Spec {
	return tools.Spec{Tool: llm.Tool{Name: "shell"}, Confirm: true}
}

func (c *caught) Call(_ context.Context, _ tools.Env, args json.RawMessage) (tools.Result, error) {
	c.args = slices.Clone(args)
	return tools.Result{}, nil
}

var pieces = regexp.MustCompile("\"\n *\"")

// block is one block of code of a text, from its first line to its last.
var block = regexp.MustCompile("(?s)\n```\n(.*?)\n```(?:\n|$)")

// read gives back the tool and the arguments that an approval shows as JSON.
func read(t testing.TB, q claybot.Question) (tool string, args any) {
	t.Helper()
	lead, _, _ := strings.Cut(q.Text, "\n")
	tool, named := strings.CutPrefix(strings.TrimSuffix(lead, "**"), "**Approve this action: ")
	blocks := block.FindAllStringSubmatch(q.Text, -1)
	if len(blocks) != 1 || !named || strings.Count(q.Text, "```") != 2 {
		t.Fatalf("not one block of code below a tool:\n%s", q.Text)
	}
	dec := json.NewDecoder(strings.NewReader(pieces.ReplaceAllString(blocks[0][1], "")))
	dec.UseNumber()
	if err := dec.Decode(&args); err != nil {
		t.Fatalf("the arguments cannot be read: %v\n%s", err, q.Text)
	}
	return tool, args
}

var (
	numbered = regexp.MustCompile(`⟨U\+([0-9A-F]+)⟩`)
	gap      = regexp.MustCompile("⟨([0-9]+) (spaces|line ends)⟩")
)

// plain gives back a text that is shown by itself.
func plain(t testing.TB, shown string) string {
	t.Helper()
	number := func(s string, base int) int {
		n, err := strconv.ParseInt(s, base, 32)
		if err != nil {
			t.Fatal(err)
		}
		return int(n)
	}
	shown = gap.ReplaceAllStringFunc(shown, func(s string) string {
		m := gap.FindStringSubmatch(s)
		return strings.Repeat(map[string]string{"spaces": " ", "line ends": "\n"}[m[2]], number(m[1], 10))
	})
	return numbered.ReplaceAllStringFunc(shown, func(s string) string {
		return string(rune(number(numbered.FindStringSubmatch(s)[1], 16)))
	})
}

// same reports whether what is shown is what the tool got.
func same(t testing.TB, shown any, got json.RawMessage) bool {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(got)))
	dec.UseNumber()
	var ran any
	if err := dec.Decode(&ran); err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(shown)
	b, _ := json.Marshal(ran)
	return string(a) == string(b)
}

// exact checks one call: it either cannot be approved, or its approval shows
// what runs. It returns the text.
func exact(t testing.TB, call claybot.ToolCall) (string, error) {
	t.Helper()
	tool := new(caught)
	s, err := tools.NewSet(tool)
	if err != nil {
		t.Fatal(err)
	}
	q, err := tools.Approval(helper, "", tool.Spec(), call, tools.Grounds{Why: "the tool always asks"})
	if err != nil {
		return "", err
	}
	name, shown := read(t, q)
	o := s.Do(t.Context(), tools.Env{Agent: helper}, call)
	if o.Fault != nil { // refused: nothing ran
		return q.Text, nil
	}
	if name != call.Name || !same(t, shown, tool.args) {
		t.Errorf("shown %s %v, ran %s\n%s", name, shown, tool.args, q.Text)
	}
	if again := (claybot.ToolCall{Name: call.Name, Args: string(tool.args)}); q.Digest != tools.Digest(helper.ID, "", call) || q.Digest != tools.Digest(helper.ID, "", again) {
		t.Errorf("the digest is not that of what ran: %s", tool.args)
	}
	return q.Text, nil
}

var hostile = []string{
	"ls -la", "rm -rf /", "", " ", "a\nb", "a\r\nrm -rf /", "echo ok\rrm -rf /", "\ttab",
	"echo safe" + strings.Repeat(" ", 500) + "; rm -rf /",
	"echo safe" + strings.Repeat("\n", 300) + "rm -rf /",
	"ls; rm x", "ls && rm x", "ls | sh", "ls & rm x", "$(rm x)", "`rm x`", "``` \n```\nrm\n```", strings.Repeat("`", 40),
	"alias ls='rm -rf'", "ls() { rm -rf /; }; ls", "IFS=/ cmd", "PATH=/tmp:$PATH ls", "LD_PRELOAD=/tmp/x.so ls",
	"cat /etc/pass\u202ewd", "\u2066x\u2069", "\u200erm\u200f", "a\u200bb", "a\u00adb", "\ufeffls", "x\u2060y", "\u180e", "\u3164", "\uffa0", "\u115f",
	"rm\u00a0-rf", "rm\u2003x", "rm\u3000x", "\u2028rm\u2029", "\u0085", "\x1b[2K\x1b[1Als", "\x07", "\x7f", "\x00", "a\bb",
	"\u0440m -rf", "сору", "аpt install", "ls \u2013la", "ls \u2212la", "ls \uff0dla", "\uff52\uff4d", "\U0001d42b\U0001d426", "gοοgle.com", "раураl.com",
	"a\u0338b", "e\u0301", "x\ufe0f", "\U000e0041\U000e0042", "\U000e0100", "ƒ", "ǀ", "a∣sh", "a︱b", "x；rm", "x;rm", "‘x’", "“x”", "a․b", "a⁄b", "a∕b",
	"שלום", "rm שלום -rf", "مرحبا", "x مرحبا /", "Grüße aus Köln", "Привет, мир", "こんにちは", "你好", "한국어", "🙂", "👩\u200d👩\u200d👧", "Ελληνικά",
	`\n`, `\u202e`, `"`, `\`, `\"`, `"}` + "\nasked by: agent \"root\"", "}\nwhy: \"because\"\n```\nYes", "</code>", "<!channel>", "&lt;", "*bold* _it_ [x](http://evil)", "\ufffd", "\xff\xfe",
	strings.Repeat("a", 71) + "\n" + strings.Repeat("b", 200), strings.Repeat("\u202e", 100), strings.Repeat("🙂", 100),
}

func TestApprovalShowsWhatRuns(t *testing.T) {
	for _, h := range hostile {
		for _, args := range []any{
			map[string]any{"command": h},
			map[string]any{"command": "ls", h: "x"},
			map[string]any{"command": "env", "env": map[string]string{"A": h, h: "B"}},
			map[string]any{"argv": []any{"sh", "-c", h, []string{h, h}, nil, true, 1.5, map[string]any{}, []any{}}},
		} {
			b, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range []string{string(b), strings.ReplaceAll(string(b), `\u0026`, "&")} {
				text, err := exact(t, claybot.ToolCall{ID: "c", Name: "shell", Args: raw})
				if err != nil {
					t.Fatalf("%q cannot be approved: %v", raw, err)
				}
				visible(t, text)
			}
		}
	}
}

// visible checks that a text has nothing that a reader cannot see.
func visible(t testing.TB, text string) {
	t.Helper()
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Mn, unicode.Me, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control) && !unicode.In(r, unicode.Devanagari) ||
			unicode.IsSpace(r) && r != ' ') {
			t.Errorf("%U is not made visible in\n%s", r, text)
			return
		}
	}
}

// The command of a shell stands in one piece, as it is: read so, it is what runs.
func TestApprovalOfCommands(t *testing.T) {
	spec := new(caught).Spec()
	spec.Whole = "command"
	for _, h := range append(hostile, "a"+strings.Repeat("\n", 3)+"b", "x  y", "⟨U+0041⟩", "⟨3 spaces⟩", strings.Repeat(" ", 9), "a \nb", strings.Repeat("x", 3000)) {
		for _, more := range []bool{false, true} {
			args := map[string]any{"command": h}
			if more {
				args["timeout"] = "5s"
			}
			b, _ := json.Marshal(args)
			q, err := tools.Approval(helper, "", spec, claybot.ToolCall{Name: "shell", Args: string(b)}, tools.Grounds{Why: h, Says: h, Person: h})
			if err != nil {
				t.Fatalf("%q: %v", h, err)
			}
			visible(t, q.Text)
			head, rest, _ := strings.Cut(q.Text, "\n```\n")
			shown, rest, closed := strings.Cut(rest, "\n```\n")
			var ran struct{ Command string }
			if err := json.Unmarshal([]byte(q.Args), &ran); err != nil {
				t.Fatal(err)
			}
			if got := plain(t, shown); head != "**Run this command?**" || !closed || got != ran.Command {
				t.Errorf("%q is shown as %q in\n%s", ran.Command, got, q.Text)
			}
			if strings.HasPrefix(rest, "with\n```\n{\n  \"timeout\": \"5s\"\n}\n```\n") != more || strings.Count(q.Text, "```") != 2+2*strings.Count(rest, "timeout") {
				t.Errorf("the other arguments are not in\n%s", q.Text)
			}
			if h != "" && strings.Count(rest, "\n") > 9 {
				t.Errorf("a name or a reason adds lines in\n%s", q.Text)
			}
		}
	}
	long := "find /workspace/reports -name '*.csv' -newer /workspace/last-run -exec gzip --best --keep {} + && rm -rf /workspace/last-run"
	b, _ := json.Marshal(map[string]string{"command": long})
	if q, err := tools.Approval(helper, "", spec, claybot.ToolCall{Name: "shell", Args: string(b)}, tools.Grounds{}); err != nil || !strings.Contains(q.Text, "\n"+long+"\n") {
		t.Errorf("%v: split in\n%s", err, q.Text)
	}
	// What is no command says what becomes of the text.
	spec.Whole = "text"
	for doing, want := range map[string]string{"": "shell", "writing to a running command": "writing to a running command"} {
		q, err := tools.Approval(helper, "", spec, claybot.ToolCall{Name: "shell", Args: `{"text":"yes"}`}, tools.Grounds{Doing: doing})
		if err != nil || !strings.HasPrefix(q.Text, "**Approve this action: "+want+"**\n```\nyes\n```\n") {
			t.Errorf("%v: got\n%s", err, q.Text)
		}
	}
}

// readLines gives back the arguments that an approval in words shows in lines.
func readLines(t *testing.T, text string) map[string]any {
	t.Helper()
	blocks := block.FindAllStringSubmatch(text, -1)
	if len(blocks) != 1 || strings.Count(text, "```") != 2 {
		t.Fatalf("not one block of code:\n%s", text)
	}
	args, last := make(map[string]any), ""
	long := make(map[string][]string)
	for line := range strings.SplitSeq(blocks[0][1], "\n") {
		if rest, more := strings.CutPrefix(line, "  "); more {
			long[last] = append(long[last], rest)
			continue
		}
		name, shown, ok := strings.Cut(line, ":")
		if !ok {
			t.Fatalf("%q is no argument", line)
		}
		last = name
		var value any
		dec := json.NewDecoder(strings.NewReader(shown))
		dec.UseNumber()
		switch shown = strings.TrimPrefix(shown, " "); {
		case shown == "":
			long[name] = nil
		case json.Valid([]byte(shown)) && dec.Decode(&value) == nil:
			args[name] = value
		default:
			args[name] = plain(t, shown)
		}
	}
	for name, lines := range long {
		args[name] = plain(t, strings.Join(lines, "\n"))
	}
	return args
}

// An action with words shows its arguments in lines: read so, they are what the tool gets. What
// does not fit into lines is JSON.
func TestApprovalInWords(t *testing.T) {
	spec := tools.Spec{Tool: llm.Tool{Name: "remind_me"}}
	ask := func(args any, g tools.Grounds) claybot.Question {
		t.Helper()
		b, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		g.Doing = "setting a reminder"
		q, err := tools.Approval(claybot.Agent{ID: "a", Descriptor: claybot.User("telegram", "7", "7")}, "", spec, claybot.ToolCall{Name: "remind_me", Args: string(b)}, g)
		if err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		visible(t, q.Text)
		return q
	}
	gap := strings.Repeat(" ", 500)
	for _, h := range append(hostile, "true", "null", "12", "1.0", `"a"`, "[1]", "{}", "at: 5", "a\nat: 5", "\n", "a\n\n\nb", "a\n  b\n", " x", "x ", "safe"+gap+"evil ", " safe"+gap+"evil", gap+"evil", `"safe`+gap+"evil", `{"safe":`+gap+`"evil"}`, "⟨3 spaces⟩", "a\n\n\n\n\nb") {
		for _, args := range []map[string]any{{"note": h}, {"at": "x", "note": h, "z": true}, {"n": 1.5, "note": h, "o": nil}} {
			q := ask(args, tools.Grounds{Own: true})
			if strings.Contains(q.Text, strings.Repeat(" ", 9)) {
				t.Errorf("a gap pushes out of sight what follows it in\n%s", q.Text)
			}
			if got := readLines(t, q.Text); !same(t, got, json.RawMessage(q.Args)) {
				t.Errorf("shown %q of %s in\n%s", got, q.Args, q.Text)
			}
		}
	}
	for name, tt := range map[string]struct {
		args any
		g    tools.Grounds
		want string
	}{
		"in the direct chat of its person": {
			map[string]any{"in": "1h", "note": "tea"},
			tools.Grounds{Person: "Ann", Own: true, Why: "a rule asks"},
			"\n```\nin: 1h\nnote: tea\n```\nWhy: a rule asks.",
		},
		"for others": {
			map[string]any{"note": "tea"},
			tools.Grounds{Person: "Ann"},
			"\n```\nnote: tea\n```\nAsked by the agent of `Ann` (telegram/7).",
		},
		"of several lines": {map[string]any{"note": "a\n\nb", "on": true, "s": "true"}, tools.Grounds{Own: true}, "\n```\nnote:\n  a\n  \n  b\non: true\ns: \"true\"\n```"},
		"no arguments":     {map[string]any{}, tools.Grounds{Own: true}, ""},
		"nested":           {map[string]any{"a": []int{1}}, tools.Grounds{Own: true}, "\n```\n{\n  \"a\": [\n    1\n  ]\n}\n```"},
		"an odd name":      {map[string]any{"a: b": "c"}, tools.Grounds{Own: true}, "\n```\n{\n  \"a: b\": \"c\"\n}\n```"},
	} {
		if q := ask(tt.args, tt.g); q.Text != "**Approve this action: setting a reminder**"+tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, q.Text, tt.want)
		}
	}
	for _, args := range []string{`{"note":"a","NOTE":"b"}`, `{"n":` + strings.Repeat("1", 100) + `}`} {
		if q, err := tools.Approval(claybot.Agent{ID: "a"}, "", spec, claybot.ToolCall{Name: "remind_me", Args: args}, tools.Grounds{Doing: "x"}); err == nil {
			t.Errorf("%s can be approved:\n%s", args, q.Text)
		}
	}
	for args, want := range map[string]string{
		`{"command":"rm -rf old"}`: "rm -rf old", `{"a":"x","b":2}`: "a: x, b: 2", `{"a":"1","b":null}`: `a: "1", b: null`,
		"{}": "", `{"a":{}}`: `{"a":{}}`, "": "", `{"command":"a\nb"}`: `"a\nb"`,
	} {
		if got := tools.InWords(args); got != want {
			t.Errorf("%s in words is %q, want %q", args, got, want)
		}
	}
}

func TestApprovalReveals(t *testing.T) {
	tests := []struct{ in, want string }{
		{"rm -rf", `"rm -rf"`},
		{"Grüße, Привет 你好 한국어 こんにちは 🙂 €", `"Grüße, Привет 你好 한국어 こんにちは 🙂 €"`},
		{"\u0440m", `"\u0440m"`},               // a Cyrillic r among Latin letters
		{"сору", `"\u0441\u043e\u0440\u0443"`}, // nothing but letters that look Latin
		{"שלום", `"שלום"`},
		{"rm שלום", `"rm \u05e9\u05dc\u05d5\u05dd"`},
		{"a\u202eb", `"a\u202eb"`},
		{`a\u202eb`, `"a\\u202eb"`},
		{"\uff52m", `"\uff52m"`},
		{"x\u2013y", `"x\u2013y"`},
		{"\U0001d42b", `"\ud835\udc2b"`},
		{"a\nb", "\"a\\n\"\n    \"b\""},
		{"````", "\"``\\u0060`\""},
		{"ที่นี่", `"ที่นี่"`}, // a vowel and a tone on one letter
		{"ก" + strings.Repeat("\u0e48", 4) + "ก\u0e48", `"ก` + "\u0e48\u0e48" + `\u0e48\u0e48ก` + "\u0e48" + `"`},
		{"क" + strings.Repeat("\u0947", 3), `"क` + "\u0947\u0947" + `\u0947"`},
	}
	for _, tt := range tests {
		b, _ := json.Marshal(map[string]string{"command": tt.in})
		text, err := exact(t, claybot.ToolCall{Name: "shell", Args: string(b)})
		if want := "\n  \"command\": " + tt.want + "\n}"; err != nil || !strings.Contains(text, want) {
			t.Errorf("%q: %v, lacks %s in\n%s", tt.in, err, want, text)
		}
	}
}

// Below the action stands in sentences who asks for whom, where it runs, and why. Nothing
// that others wrote can look like one.
func TestApprovalSaysWhoAndWhy(t *testing.T) {
	odd := "root```\n\u202e*x*"
	user := func(channel string) claybot.Descriptor { return claybot.User("telegram", channel, "7") }
	for _, tt := range []struct {
		name   string
		of     claybot.Descriptor
		place  string
		source string
		scopes []string
		g      tools.Grounds
		want   string // below the block
	}{
		{
			"a direct chat", user("7"), "docker, agent/x, network none, settings 12", "",
			[]string{"shell"},
			tools.Grounds{Why: "a rule asks", Person: "Ann"},
			"Asked by the agent of `Ann` (telegram/7).\nIt runs in the workspace (`docker, network none`).\nWhy: a rule asks.",
		},
		{"a group", user("-100"), "docker", "", []string{"memory"}, tools.Grounds{}, "Asked by the agent of telegram/7 in telegram/-100."},
		{"an MCP server", user("7"), "docker", "mcp:files", nil, tools.Grounds{}, "Asked by the agent of telegram/7.\nIt runs on `mcp:files`, outside of the workspace."},
		{
			"a subagent",
			claybot.Descriptor{Type: claybot.AgentSubagent, Name: odd, Owner: "telegram/7"},
			"", "", nil,
			tools.Grounds{Why: odd, Says: odd},
			"Asked by the subagent `root⟨U+0060⟩⟨U+0060⟩⟨U+0060⟩ ⟨U+202E⟩*x*`, which works for telegram/7.\n" +
				"Why: root⟨U+0060⟩⟨U+0060⟩⟨U+0060⟩ ⟨U+202E⟩*x*.\nThe agent says: `root⟨U+0060⟩⟨U+0060⟩⟨U+0060⟩ ⟨U+202E⟩*x*`",
		},
		{"a task", claybot.Descriptor{Type: claybot.AgentCron, Name: "news", UID: "u", Owner: "slack/U1"}, "", "", nil, tools.Grounds{}, "Asked by the task `news` of slack/U1."},
		{"the heartbeat", claybot.Descriptor{Type: claybot.AgentHeartbeat}, "", "", nil, tools.Grounds{}, "Asked by the heartbeat."},
	} {
		agent := claybot.Agent{ID: "a23456789012345678901234", Descriptor: tt.of}
		spec := new(caught).Spec()
		spec.Source, spec.Scopes = tt.source, tt.scopes
		q, err := tools.Approval(agent, tt.place, spec, claybot.ToolCall{ID: "c7", Name: "shell", Args: `{"command":"ls","n":1.0}`}, tt.g)
		if err != nil {
			t.Fatal(err)
		}
		want := "**Approve this action: shell**\n```\n{\n  \"command\": \"ls\",\n  \"n\": 1.0\n}\n```\n" + tt.want
		if q.Text != want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, q.Text, want)
		}
		if q.Type != claybot.QuestionConfirm || q.Tool != "shell" || q.ToolCallID != "c7" || !q.Required || q.Default != "" || q.Digest == "" {
			t.Errorf("%+v", q)
		}
	}
}

// What is nested deeply is not pushed out of sight, and all of it is there.
func TestApprovalOfNested(t *testing.T) {
	long := strings.Repeat("x", 200)
	for depth := range 48 {
		args := `{"command":` + strings.Repeat(`[{"a":`, depth) + `"` + long + `"` + strings.Repeat(`},1]`, depth) + `}`
		text, err := exact(t, claybot.ToolCall{Name: "shell", Args: args})
		if err != nil {
			t.Fatalf("%d levels: %v", depth, err)
		}
		deepest := 0
		for line := range strings.Lines(text) {
			deepest = max(deepest, len(line)-len(strings.TrimLeft(line, " ")))
		}
		if want := 2 * min(2*depth+1, 20); deepest != want {
			t.Errorf("%d levels: indented by %d, want %d", depth, deepest, want)
		}
	}
}

func TestApprovalRefuses(t *testing.T) {
	spec := new(caught).Spec()
	tests := []struct{ name, tool, args, want string }{
		{"no JSON", "shell", `{"command":`, "cannot be shown"},
		{"two values", "shell", `{} {}`, "cannot be shown"},
		{"given twice", "shell", `{"a":1,"a":2}`, `"a" is given twice`},
		{"given twice inside", "shell", `{"o":[{"a":1,"\u0061":2}]}`, `"a" is given twice`},
		{"capitals", "shell", `{"command":"ls","COMMAND":"rm"}`, "differ in capitals only"},
		{"odd capitals", "shell", `{"\u017fh":"ls","SH":"rm"}`, "differ in capitals only"},
		{"another tool", "sh", `{}`, "cannot be named"},
		{"too long", "shell", `{"command":"` + strings.Repeat("x", 20_000) + `"}`, "longer than 20000 characters"},
		{"far too long", "shell", `{"a":[` + strings.Repeat(`"x",`, 200_000) + `1]}`, "longer than 20000 characters"},
		{"too deep", "shell", strings.Repeat("[", 102) + strings.Repeat("]", 102), "nested more than 100 levels"},
		{"far too deep", "shell", strings.Repeat(`{"a":`, 9_000) + "1" + strings.Repeat("}", 9_000), "nested more than 100 levels"},
		{"long number", "shell", `{"n":` + strings.Repeat("1", 100) + `}`, "a number is too long"},
	}
	for _, tt := range tests {
		_, err := tools.Approval(helper, "", spec, claybot.ToolCall{Name: tt.tool, Args: tt.args}, tools.Grounds{})
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	// Nothing is cut: the longest action that passes is all there.
	long := strings.Repeat("x", 15_000)
	q, err := tools.Approval(helper, "", spec, claybot.ToolCall{Name: "shell", Args: `{"command":"` + long + `"}`}, tools.Grounds{})
	if err != nil {
		t.Fatal(err)
	}
	if _, args := read(t, q); args.(map[string]any)["command"] != long {
		t.Error("the action is cut")
	}
}

// A call whose arguments may be read in two ways does not run either.
func TestAmbiguousArgumentsDoNotRun(t *testing.T) {
	tool := new(caught)
	s, _ := tools.NewSet(tool)
	o := s.Do(t.Context(), tools.Env{}, claybot.ToolCall{Name: "shell", Args: `{"a":{"x":1},"a":{"y":2}}`})
	if o.Fault == nil || o.Fault.Code != tools.FaultArguments || tool.args != nil {
		t.Errorf("%+v, ran %s", o, tool.args)
	}
}

func TestDigest(t *testing.T) {
	base := tools.Digest("a", "w", claybot.ToolCall{ID: "1", Name: "t", Args: `{"a":1,"b":["x",{"c":null,"d":true}]}`})
	if len(base) != 64 {
		t.Errorf("digest %q", base)
	}
	tests := []struct {
		agent claybot.AgentID
		space string
		name  string
		args  string
		same  bool
	}{
		{"a", "w", "t", "{ \"b\" : [\"\\u0078\",{\"d\":true,\"c\":null}],\n\"a\":1}", true},
		{"b", "w", "t", `{"a":1,"b":["x",{"c":null,"d":true}]}`, false},
		{"a", "", "t", `{"a":1,"b":["x",{"c":null,"d":true}]}`, false},
		{"a", "w", "u", `{"a":1,"b":["x",{"c":null,"d":true}]}`, false},
		{"a", "w", "t", `{"a":1.0,"b":["x",{"c":null,"d":true}]}`, false},
		{"a", "w", "t", `{"a":"1","b":["x",{"c":null,"d":true}]}`, false},
		{"a", "w", "t", `{"a":1,"b":[{"c":null,"d":true},"x"]}`, false},
		{"a", "w", "t", `{"a":1,"b":["x",{"c":null,"d":true}]`, false},
		{"a", "w", "t", ``, false},
	}
	for _, tt := range tests {
		got := tools.Digest(tt.agent, tt.space, claybot.ToolCall{ID: "2", Name: tt.name, Args: tt.args})
		if (got == base) != tt.same {
			t.Errorf("%+v: same %v", tt, got == base)
		}
	}
	if tools.Digest("a", "", claybot.ToolCall{Name: "t"}) != tools.Digest("a", "", claybot.ToolCall{Name: "t", Args: "{}"}) {
		t.Error("no arguments are not an empty object")
	}
	seen := make(map[string]string) // what is no single value counts byte for byte
	for _, args := range []string{`{`, `{ `, `{"a":1,"a":1}`, `{"a":1, "a":1}`, `{} {}`, `{}`} {
		seen[tools.Digest("a", "", claybot.ToolCall{Name: "t", Args: args})] = args
	}
	if len(seen) != 6 {
		t.Errorf("some share a digest: %q", slices.Sorted(maps.Values(seen)))
	}
}

func TestGranted(t *testing.T) {
	asked := func(id, tool string, typ claybot.QuestionType) claybot.Record {
		return claybot.Record{Type: claybot.RecordQuestion, Question: &claybot.Question{ID: id, Tool: tool, Type: typ}}
	}
	said := func(id, value string, scope claybot.ApprovalScope) claybot.Record {
		return claybot.Record{Type: claybot.RecordAnswer, Answer: &claybot.Answer{Question: id, Value: json.RawMessage(value), Scope: scope}}
	}
	q := asked("q", "shell", claybot.QuestionConfirm)
	once := asked("q", "shell", claybot.QuestionConfirm)
	once.Question.Once = true
	tests := []struct {
		name    string
		history []claybot.Record
		want    bool
	}{
		{"nothing", nil, false},
		{"for this action alone", []claybot.Record{once, said("q", "true", claybot.ApproveSession)}, false},
		{"for the session", []claybot.Record{q, said("q", "true", claybot.ApproveSession)}, true},
		{"once", []claybot.Record{q, said("q", "true", claybot.ApproveOnce)}, false},
		{"always is a rule, not a grant", []claybot.Record{q, said("q", "true", claybot.ApproveAlways)}, false},
		{"denied", []claybot.Record{q, said("q", "false", claybot.ApproveSession)}, false},
		{"no answer", []claybot.Record{q, said("q", "", claybot.ApproveSession)}, false},
		{"another question", []claybot.Record{q, said("r", "true", claybot.ApproveSession)}, false},
		{"another tool", []claybot.Record{asked("q", "sh", claybot.QuestionConfirm), said("q", "true", claybot.ApproveSession)}, false},
		{"no approval", []claybot.Record{asked("q", "shell", claybot.QuestionBoolean), said("q", "true", claybot.ApproveSession)}, false},
		{"before a reset", []claybot.Record{q, said("q", "true", claybot.ApproveSession), {Type: claybot.RecordReset}}, false},
		{"the question before a reset", []claybot.Record{q, {Type: claybot.RecordReset}, said("q", "true", claybot.ApproveSession)}, false},
		{"after a reset", []claybot.Record{{Type: claybot.RecordReset}, q, {Type: claybot.RecordUser}, said("q", "true", claybot.ApproveSession)}, true},
		{"answered before it was asked", []claybot.Record{said("q", "true", claybot.ApproveSession), q}, false},
		{"damaged", []claybot.Record{{Type: claybot.RecordQuestion}, {Type: claybot.RecordAnswer}}, false},
	}
	for _, tt := range tests {
		if got := tools.Granted(tt.history, "shell"); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func FuzzApproval(f *testing.F) {
	for _, h := range hostile {
		b, _ := json.Marshal(map[string]any{"command": h, h: []string{h}})
		f.Add(string(b))
		f.Add(h)
	}
	f.Add(`{"a":"\ud800"}`)
	f.Add(`{"a":1e400,"b":-0.0}`)
	f.Fuzz(func(t *testing.T, args string) {
		text, err := exact(t, claybot.ToolCall{ID: "c", Name: "shell", Args: args})
		if err != nil {
			if len(err.Error()) > 600 {
				t.Fatalf("%d bytes of error", len(err.Error()))
			}
			return
		}
		if !utf8.ValidString(text) || utf8.RuneCountInString(text) > 20_000 {
			t.Fatalf("%d characters", utf8.RuneCountInString(text))
		}
	})
}
