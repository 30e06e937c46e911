package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

const notice = "Hello! This is the built-in demo model: no real model is configured yet. " +
	"Run `claybot setup`, or set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for any OpenAI-compatible server, and start claybot again. " +
	"Until then I echo. Send `help` to see what else you can try."

// findTools is the tool that adds others. Where it is, more tools can be called than a
// request declares.
const findTools = "find_tools"

type chat struct {
	first   bool     // nothing was answered before; a call is no answer
	person  bool     // a person wrote, so it is a conversation
	said    []saying // what was said since the last answer
	results []string // what the last calls came to
	called  []string // the tools of those calls
	calls   int      // calls so far, for ids
	tools   []llm.Tool
}

// A saying is what a person said, or with a kind, what the system did.
type saying struct {
	kind claybot.SystemKind
	text string
}

// read finds out what is to be answered. The repeated system prompt, which has
// an id of its own, and a summary are not messages of a person.
func read(r llm.Request) chat {
	c := chat{first: true, tools: r.Tools}
	for _, m := range r.Messages {
		switch m.Role {
		case llm.RoleAssistant:
			c.said, c.results, c.called = nil, nil, nil
			c.first = c.first && len(m.Calls) > 0
			for _, call := range m.Calls {
				c.calls++
				c.called = append(c.called, call.Name)
			}
		case llm.RoleTool:
			c.results = append(c.results, m.Content)
		case llm.RoleUser:
			switch {
			case m.ID == "system_prompt_fallback":
			case llm.IsSummary(m.Content):
				c.first = false
			default:
				s := listen(m.Content)
				c.person = c.person || s.kind == ""
				c.said = append(c.said, s)
			}
		case llm.RoleSystem:
		}
	}
	return c
}

// listen takes a message for what it asks of the model. A task is done, and a
// question of another agent answered, as if a person had said it; so is the
// prompt of a cron task, below the head of its message.
func listen(content string) saying {
	s := saying{text: strings.TrimSpace(llm.Unwrap(content))}
	kind, _ := llm.SystemKind(content)
	switch kind {
	case claybot.KindFailure, claybot.KindResult, claybot.KindReminder, claybot.KindHeartbeat, claybot.KindNotice, claybot.KindPushBack:
		s.kind = kind
	case claybot.KindCron:
		if _, prompt, ok := strings.Cut(s.text, "\n\n"); ok {
			s.text = strings.TrimSpace(prompt)
		}
		s.kind = claybot.KindTask
	case claybot.KindTask, claybot.KindMessage:
		s.kind = claybot.KindTask
	}
	return s
}

func reply(c chat) (llm.Response, error) {
	if len(c.results) > 0 {
		return text(report(c)), nil
	}
	var last saying
	if len(c.said) > 0 {
		last = c.said[len(c.said)-1]
	}
	if last.kind != "" && last.kind != claybot.KindTask {
		return text(heard(c.said)), nil
	}
	word, rest, _ := strings.Cut(last.text, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(word) {
	case "help":
		return text(help(c.tools)), nil
	case "say":
		if rest != "" {
			return text(rest), nil
		}
	case "call", "use":
		if r, ok := call(c, rest); ok {
			return r, nil
		}
	case "busy":
		if seconds, err := strconv.ParseFloat(rest, 64); err == nil && seconds >= 0 && seconds < 1e6 && offers(c.tools, "wait") {
			r, _ := call(c, fmt.Sprintf(`wait {"seconds":%g}`, seconds))
			return r, nil
		}
	case "ask":
		if strings.EqualFold(rest, "me") && offers(c.tools, askTool) {
			r, _ := call(c, askTool+" "+askArgs)
			return r, nil
		}
	case "stream":
		return text(c.opening() + story(1)), nil
	case "long":
		return text(c.opening() + story(12)), nil
	case "fail":
		if rest == "" {
			return llm.Response{}, &llm.Error{Class: llm.Permanent, Text: "the demo model fails because it was asked to"}
		}
	}
	return text(echo(c)), nil
}

// askTool is the tool with which a person is asked, and askArgs what the demo
// asks.
const (
	askTool = "ask_user"
	askArgs = `{"question":"Which colour do you like?","key":"colour","options":["red","green","blue"]}`
)

// chosen says what a person answered; ok is false for a result of askTool that
// has no single answer.
func chosen(result string) (s string, ok bool) {
	line, rest, _ := strings.Cut(result, "\n")
	var answers map[string]any
	if json.Unmarshal([]byte(line), &answers) != nil || len(answers) != 1 {
		return "", false
	}
	for _, value := range answers {
		s = fmt.Sprintf("You chose %v.", value)
	}
	if rest != "" {
		s += " " + rest
	}
	return s, true
}

func text(s string) llm.Response { return llm.Response{Text: s, Stop: llm.StopEnd} }

func (s saying) line() string {
	switch s.kind {
	case claybot.KindReminder:
		return "Reminder: " + s.text
	case claybot.KindFailure:
		return "A helper failed: " + s.text
	case claybot.KindResult:
		return "A helper reports: " + s.text
	case claybot.KindNotice:
		return "I was told: " + s.text
	}
	return s.text
}

// heard answers what the system said, each message with a line. Nothing needs to
// be said about a heartbeat, unless it asks for words.
func heard(said []saying) string {
	var lines []string
	for _, s := range said {
		switch s.kind {
		case claybot.KindHeartbeat:
			for line := range strings.Lines(s.text) {
				if words, ok := strings.CutPrefix(strings.TrimSpace(line), "say "); ok {
					lines = append(lines, strings.TrimSpace(words))
				}
			}
		case "", claybot.KindTask:
			lines = append(lines, "You said: "+s.text)
		default:
			lines = append(lines, s.line())
		}
	}
	if len(lines) == 0 {
		return "NO_REPLY"
	}
	return strings.Join(lines, "\n")
}

// summarize answers a request for a summary: how much there was, and the first
// and the last line of it.
func summarize(content string) llm.Response {
	lines := strings.FieldsFunc(content, func(r rune) bool { return r == '\n' })
	var kept []string
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && line[0] != '<' {
			kept = append(kept, line)
		}
	}
	if len(kept) < 2 {
		return text("Nothing was said before.")
	}
	short := func(s string) string {
		if len(s) > 100 {
			return strings.ToValidUTF8(s[:100], "") + "…"
		}
		return s
	}
	last := kept[len(kept)-2] // the very last line asks for the summary
	return text(fmt.Sprintf("(demo) %d lines were said before, from %q to %q.", len(kept)-1, short(kept[0]), short(last)))
}

func offers(offered []llm.Tool, name string) bool {
	return slices.ContainsFunc(offered, func(t llm.Tool) bool { return t.Name == name || t.Name == findTools })
}

// opening is the notice, in the first answer that a person gets only.
func (c chat) opening() string {
	if c.first && c.person {
		return notice + "\n\n"
	}
	return ""
}

func (c chat) words() string {
	lines := make([]string, len(c.said))
	for i, s := range c.said {
		lines[i] = s.line()
	}
	return strings.Join(lines, "\n")
}

func echo(c chat) string {
	said := c.words()
	if strings.TrimSpace(said) == "" {
		said = "(nothing)"
	}
	if c.first && c.person {
		return c.opening() + "You said: " + said
	}
	return "Demo model: you said: " + said
}

func report(c chat) string {
	var b strings.Builder
	b.WriteString(c.opening())
	for i, result := range c.results {
		name := "The tool"
		if i < len(c.called) {
			name = "`" + c.called[i] + "`"
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		if s, ok := chosen(result); ok && i < len(c.called) && c.called[i] == askTool {
			b.WriteString(s)
			continue
		}
		fmt.Fprintf(&b, "%s returned: %s", name, result)
	}
	if len(c.said) > 0 { // it was said while the tools ran
		fmt.Fprintf(&b, "\nMeanwhile you said: %s", c.words())
	}
	return b.String()
}

func help(offered []llm.Tool) string {
	var b strings.Builder
	b.WriteString("I am the built-in demo model. Try:\n" +
		"- any text: I echo it\n" +
		"- `stream`: an answer that grows word by word\n" +
		"- `long`: an answer too long for one message\n" +
		"- `say <text>`: an answer that is exactly the text\n" +
		"- `fail`: a model that fails\n")
	if offers(offered, "wait") {
		b.WriteString("- `busy <seconds>`: I use a tool that takes so long\n")
	}
	for _, e := range examples() {
		if offers(offered, e.tool) {
			fmt.Fprintf(&b, "- `use %s %s`: %s\n", e.tool, e.args, e.what)
		}
	}
	for _, t := range offered {
		if !slices.ContainsFunc(examples(), func(e example) bool { return e.tool == t.Name }) {
			fmt.Fprintf(&b, "- `use %s %s`: %s\n", t.Name, sample(t.Parameters), t.Description)
		}
	}
	b.WriteString("For real answers run `claybot setup`, or set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for any OpenAI-compatible server.")
	return b.String()
}

// An example is a use of a tool that is worth trying as it stands.
type example struct{ tool, args, what string }

func examples() []example {
	return []example{
		{askTool, askArgs, "I ask you something; `ask me` does the same"},
		{"start_subagent", `{"task":"say done","name":"helper","report":true}`, "another agent does a task and reports"},
		{"spawn_and_wait", `{"tasks":[{"task":"say one"},{"task":"busy 3"},{"task":"fail"}]}`, "several agents at once; I wait for all of them"},
		{"list_agents", `{}`, "who is there"},
		{"remind_me", `{"in":"1m","note":"drink some water"}`, "I come back to you"},
		{"list_reminders", `{}`, "what I will come back to"},
		{"cron_add", `{"name":"greeting","every":"1m","prompt":"say good morning"}`, "a task of its own, again and again"},
		{"cron_list", `{}`, "those tasks"},
	}
}

// call makes the call that "use <tool> {args}" asks for. Without arguments the
// required ones are made up. ok is false for what only sounds like a wish, as
// "call me later" does.
func call(c chat, wish string) (r llm.Response, ok bool) {
	name, args, _ := strings.Cut(wish, " ")
	args = strings.TrimSpace(args)
	if name == "" {
		return r, false
	}
	names, known, more := make([]string, len(c.tools)), false, false
	for i, t := range c.tools {
		if t.Name == name {
			known, args = true, cmp.Or(args, sample(t.Parameters))
		}
		more = more || t.Name == findTools
		names[i] = "`" + t.Name + "`"
	}
	if !known && args != "" && !strings.HasPrefix(args, "{") {
		return r, false
	}
	if known || more && args != "" { // there are others that can be called as well
		return llm.Response{
			Text:  "I use `" + name + "`.",
			Calls: []claybot.ToolCall{{ID: fmt.Sprintf("demo_%d", c.calls+1), Name: name, Args: args}},
			Stop:  llm.StopTools,
		}, true
	}
	if len(names) == 0 {
		return text(fmt.Sprintf("%sThere is no tool %q; I have no tools at all.", c.opening(), name)), true
	}
	return text(fmt.Sprintf("%sThere is no tool %q. I have: %s.", c.opening(), name, strings.Join(names, ", "))), true
}

func sample(parameters json.RawMessage) string {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	args := map[string]any{}
	if json.Unmarshal(parameters, &schema) != nil {
		return "{}" // the call will say what is missing
	}
	for _, field := range schema.Required {
		switch schema.Properties[field].Type {
		case "number", "integer":
			args[field] = 1
		case "boolean":
			args[field] = true
		case "array":
			args[field] = []any{}
		case "object":
			args[field] = map[string]any{}
		default:
			args[field] = "demo"
		}
	}
	b, _ := json.Marshal(args) // such values always marshal
	return string(b)
}

func story(n int) string {
	const paragraph = "Clay is a patient material. You press it and it keeps the shape, you wet it and it forgets. " +
		"A small robot made of clay sat by the river and counted the boats: one with a red sail, one with a dog on deck, " +
		"one that seemed to be empty but hummed. Every boat got an answer, and no boat was counted twice, because the robot " +
		"wrote each of them into the bank with a stick before it waved. When the rain came and washed the robot away, " +
		"another one was made from the same clay. It read what was written in the bank, and waved to the next boat."
	parts := make([]string, n)
	for i := range parts {
		parts[i] = paragraph
		if n > 1 {
			parts[i] = fmt.Sprintf("**%d.** %s", i+1, paragraph)
		}
	}
	return strings.Join(parts, "\n\n")
}
