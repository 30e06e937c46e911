package demo

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
)

const notice = "Hello! This is the built-in demo model: no real model is configured yet. " +
	"Set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for any OpenAI-compatible server, and start claybot again. " +
	"Until then I echo. Send `help` to see what else you can try."

// A chat is what the demo model sees of a request.
type chat struct {
	first   bool     // nothing was answered before; a call is no answer
	said    []string // what the user said since the last answer
	results []string // what the last calls came to
	called  []string // the tools of those calls
	calls   int      // calls so far, for ids
	tools   []llm.Tool
}

// read finds out what is to be answered. The repeated system prompt, which has
// an id of its own, is nothing that the user said.
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
			if m.ID != "system_prompt_fallback" {
				c.said = append(c.said, strings.TrimSpace(llm.Unwrap(m.Content)))
			}
		case llm.RoleSystem:
		}
	}
	return c
}

func reply(c chat) (llm.Response, error) {
	if len(c.results) > 0 {
		return text(report(c)), nil
	}
	last := ""
	if len(c.said) > 0 {
		last = c.said[len(c.said)-1]
	}
	word, rest, _ := strings.Cut(last, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(word) {
	case "help":
		return text(help(c.tools)), nil
	case "call", "use":
		if r, ok := call(c, rest); ok {
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

func text(s string) llm.Response { return llm.Response{Text: s, Stop: llm.StopEnd} }

// opening is the notice, in the first answer of a conversation only.
func (c chat) opening() string {
	if c.first {
		return notice + "\n\n"
	}
	return ""
}

func echo(c chat) string {
	said := strings.Join(c.said, "\n")
	if strings.TrimSpace(said) == "" {
		said = "(nothing)"
	}
	if c.first {
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
		fmt.Fprintf(&b, "%s returned: %s", name, result)
	}
	if len(c.said) > 0 { // it was said while the tools ran
		fmt.Fprintf(&b, "\nMeanwhile you said: %s", strings.Join(c.said, "\n"))
	}
	return b.String()
}

func help(offered []llm.Tool) string {
	var b strings.Builder
	b.WriteString("I am the built-in demo model. Try:\n" +
		"- any text: I echo it\n" +
		"- `stream`: an answer that grows word by word\n" +
		"- `long`: an answer too long for one message\n" +
		"- `fail`: a model that fails\n")
	for _, t := range offered {
		fmt.Fprintf(&b, "- `use %s %s`: %s\n", t.Name, sample(t.Parameters), t.Description)
	}
	b.WriteString("For real answers set `OPENAI_API_KEY`, or `OPENAI_BASE_URL` for any OpenAI-compatible server.")
	return b.String()
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
	names := make([]string, len(c.tools))
	for i, t := range c.tools {
		if t.Name == name {
			if args == "" {
				args = sample(t.Parameters)
			}
			id := fmt.Sprintf("demo_%d", c.calls+1)
			return llm.Response{
				Text:  "I use `" + name + "`.",
				Calls: []claybot.ToolCall{{ID: id, Name: name, Args: args}},
				Stop:  llm.StopTools,
			}, true
		}
		names[i] = "`" + t.Name + "`"
	}
	if args != "" && !strings.HasPrefix(args, "{") {
		return r, false
	}
	if len(names) == 0 {
		return text(fmt.Sprintf("%sThere is no tool %q; I have no tools at all.", c.opening(), name)), true
	}
	return text(fmt.Sprintf("%sThere is no tool %q. I have: %s.", c.opening(), name, strings.Join(names, ", "))), true
}

// sample makes up arguments: a harmless value for every required field.
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

// story is a text of n paragraphs, each about 600 characters long.
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
