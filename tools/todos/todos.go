// Package todos holds the tools write_todos and read_todos: the list by which
// an agent keeps track of a longer piece of work. There is one list for each
// agent; it is durable, and can be shown to the person as one message that is
// kept up to date.
//
// Only cmd imports it.
package todos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

const (
	// path is the document that holds the list, in the scope of the agent.
	path = "todos"
	// maxScope is the most bytes that the agent's documents may have with the
	// list. It is more than files may take, so that there is always room for
	// the list.
	maxScope = 17 << 20
	maxTodos = 100
	maxText  = 500 // characters of one entry
	maxID    = 40  // bytes
)

// Status is how far an entry has come.
type Status string

// The states of an entry.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Done       Status = "done"
	Canceled   Status = "canceled"
)

// mark is the sign of s in a list; empty for what is no Status.
func (s Status) mark() string {
	switch s {
	case Pending:
		return "☐"
	case InProgress:
		return "◐"
	case Done:
		return "☑"
	case Canceled:
		return "☒"
	}
	return ""
}

// A Todo is one entry. Text is one line.
type Todo struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Status Status `json:"status"`
}

// Tools are all tools of this package. Lists are kept in docs. When show says so
// for a call, a changed list is displayed under the name "todos"; display and
// show may be nil, then none is.
func Tools(docs storage.Documents, display tools.Display, show func(tools.Env) bool) []tools.Tool {
	l := lists{docs, display, show}
	if display == nil || show == nil {
		l.show = func(tools.Env) bool { return false }
	}
	return []tools.Tool{l.write(), l.read()}
}

// List is the list of an agent in its order; empty when there is none.
func List(ctx context.Context, docs storage.Documents, agent claybot.AgentID) ([]Todo, error) {
	text, err := docs.Document(ctx, scope(agent), path)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the todos of %s: %w", agent, err)
	}
	list, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("read the todos of %s: %w", agent, err)
	}
	return list, nil
}

func scope(agent claybot.AgentID) string { return "agent/" + string(agent) }

// decode reads a stored list. One that a person has damaged is refused whole.
func decode(text string) ([]Todo, error) {
	var list []Todo
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, err
	}
	return list, check(list)
}

type lists struct {
	docs    storage.Documents
	display tools.Display
	show    func(tools.Env) bool
}

func (l lists) write() tools.Tool {
	type item struct {
		ID     string `json:"id,omitempty" jsonschema:"a short id that stays with the entry; a number when absent"`
		Text   string `json:"text" jsonschema:"what is to be done, in at most 500 characters"`
		Status string `json:"status" jsonschema:"pending, in_progress, done or canceled"`
	}
	type input struct {
		Todos []item `json:"todos" jsonschema:"the whole list in its order, at most 100 entries; it replaces the one before"`
	}
	spec := tools.Spec{
		Tool: llm.Tool{Name: "write_todos", Description: "Replaces your list of todos. Use it for work of several steps: write the list first, " +
			"then write it again whenever a step begins or ends."},
		Effect: tools.Idempotent,
		Scopes: []string{"todos"},
		Public: true, // of this conversation
	}
	return tools.New(spec, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		list := make([]Todo, len(in.Todos))
		for i, t := range in.Todos {
			list[i] = Todo{strings.TrimSpace(t.ID), strings.Join(strings.Fields(t.Text), " "), Status(t.Status)}
		}
		number(list)
		if err := check(list); err != nil {
			return tools.Result{}, err
		}
		b, err := json.Marshal(list)
		if err != nil {
			return tools.Result{}, fmt.Errorf("write the todos: %w", err)
		}
		if err := l.docs.SaveDocument(ctx, scope(env.Agent.ID), path, string(b), maxScope); err != nil {
			return tools.Result{}, fmt.Errorf("save the todos: %w", err)
		}
		text := "The list is saved.\n" + forModel(list)
		if l.show(env) {
			if err := l.display.Show(ctx, env, path, forPeople(list)); err != nil {
				text = fmt.Sprintf("The list is saved, but could not be shown: %v\n%s", err, forModel(list))
			}
		}
		return tools.Result{Text: text}, nil
	})
}

func (l lists) read() tools.Tool {
	spec := tools.Spec{
		Tool:   llm.Tool{Name: "read_todos", Description: "Reads your list of todos."},
		Effect: tools.ReadOnly,
		Scopes: []string{"todos"},
		Public: true,
	}
	return tools.New(spec, func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
		list, err := List(ctx, l.docs, env.Agent.ID)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: forModel(list)}, nil
	})
}

// number gives the entries without an id the smallest numbers that are free.
func number(list []Todo) {
	taken := make(map[string]bool, len(list))
	for _, t := range list {
		taken[t.ID] = true
	}
	next := 1
	for i := range list {
		if list[i].ID != "" {
			continue
		}
		for taken[strconv.Itoa(next)] {
			next++
		}
		list[i].ID = strconv.Itoa(next)
		next++
	}
}

func check(list []Todo) error {
	if len(list) > maxTodos {
		return fmt.Errorf("field todos: %d entries, the limit is %d", len(list), maxTodos)
	}
	seen := make(map[string]int, len(list))
	for i, t := range list {
		switch {
		case t.ID == "" || len(t.ID) > maxID || strings.ContainsAny(t.ID, "\r\n"):
			return fmt.Errorf("field todos[%d].id: want one line of 1 to %d bytes", i, maxID)
		case t.Text == "":
			return fmt.Errorf("field todos[%d].text: must not be empty", i)
		case utf8.RuneCountInString(t.Text) > maxText:
			return fmt.Errorf("field todos[%d].text: %d characters, the limit is %d", i, utf8.RuneCountInString(t.Text), maxText)
		case t.Status.mark() == "":
			return fmt.Errorf("field todos[%d].status: %.40q, want pending, in_progress, done or canceled", i, string(t.Status))
		}
		if first, twice := seen[t.ID]; twice {
			return fmt.Errorf("field todos[%d].id: %q is the id of todos[%d] already", i, t.ID, first)
		}
		seen[t.ID] = i
	}
	return nil
}

func forModel(list []Todo) string {
	if len(list) == 0 {
		return "(the list is empty)"
	}
	lines := make([]string, len(list))
	for i, t := range list {
		lines[i] = fmt.Sprintf("%s [%s] %s", t.ID, t.Status, short(t.Text, len(list)))
	}
	return strings.Join(lines, "\n")
}

func short(text string, entries int) string {
	const room = 24 << 10
	limit := room / entries
	if len(text) <= limit {
		return text
	}
	for !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}

func forPeople(list []Todo) string {
	if len(list) == 0 {
		return "No todos."
	}
	lines := make([]string, len(list))
	for i, t := range list {
		text := escape(t.Text)
		switch t.Status {
		case InProgress:
			text = "**" + text + "**"
		case Canceled:
			text = "~~" + text + "~~"
		case Pending, Done:
		}
		lines[i] = "- " + t.Status.mark() + " " + text
	}
	return strings.Join(lines, "\n")
}

// escape keeps the signs of Markdown in a line from meaning anything, so that
// one entry cannot change how the rest of the list looks. Addresses stay as they
// are, or they would lead elsewhere.
func escape(text string) string {
	words := strings.Split(text, " ")
	for i, w := range words {
		if strings.HasPrefix(w, "https://") || strings.HasPrefix(w, "http://") {
			continue
		}
		var b strings.Builder
		for _, r := range w {
			if strings.ContainsRune("\\`*_~[]<>|#&!", r) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
		words[i] = b.String()
	}
	return strings.Join(words, " ")
}
