package llm

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/claybot/claybot"
)

// What the model reads where history has nothing to show.
const (
	noBeginning  = "(the beginning of this conversation is missing)"
	goOn         = "(continue)"
	noOutput     = "(no output)"
	inDoubt      = "interrupted, outcome unknown"
	neverStarted = "not started"
)

// Messages turns what an agent remembers into a chat. It is a pure function of
// the records after the most recent start or reset, and total: whatever it
// gets, Check finds nothing wrong with the result. Nothing is lost to repair it
// does: each call is followed by its result wherever that was recorded, and a
// call without one gets a result that says so. A summary stands at the
// beginning, in the place of the records it is for. Results of tools are cut as
// CutResult does it. More records only add messages, unless they bring a
// summary or a late result, or take the place of a filled-in end, so that
// providers can cache the beginning.
func Messages(history []claybot.Record) []Message {
	return new(Chat).Messages(history, true, 0)
}

// MessagesWithoutTools is Messages for an agent that has no tools: calls and
// results are left out, the text around them stays.
func MessagesWithoutTools(history []claybot.Record) []Message {
	return new(Chat).Messages(history, false, 0)
}

// Folded returns what an agent remembers in the order in which a model reads
// it: the newest summary after the most recent start or reset, or nil, and the
// records that it does not stand for, those that it keeps and those after it.
// There is no other summary among them.
func Folded(history []claybot.Record) (summary *claybot.Record, rest []claybot.Record) {
	o := orderOf(history)
	if o.summary < 0 {
		return nil, history[o.first:]
	}
	rest = make([]claybot.Record, 0, len(history)-o.first-1)
	for i := o.first; i < len(history); i++ {
		if history[i].Type != claybot.RecordSummary {
			rest = append(rest, history[i])
		}
	}
	return &history[o.summary], rest
}

// Stateless returns a chat without what models want back with their answers.
func Stateless(chat []Message) []Message {
	chat = slices.Clone(chat)
	for i := range chat {
		chat[i].State = nil
	}
	return chat
}

// appendCalls adds what an assistant record and its results become: one
// message with the calls, then one for each result, in the order of the calls.
func appendCalls(chat []Message, r claybot.Record, results []*claybot.Record, used map[string]bool) []Message {
	text := valid(r.Text)
	for from := 0; from < len(r.ToolCalls); from += MaxCalls {
		to := min(from+MaxCalls, len(r.ToolCalls))
		calls := make([]claybot.ToolCall, 0, to-from)
		for _, c := range r.ToolCalls[from:to] {
			calls = append(calls, repairCall(c, used))
		}
		m := Message{Role: RoleAssistant, Content: text, Calls: calls}
		if from == 0 {
			m.State = r.State
		}
		chat = append(chat, m)
		for j, c := range calls {
			m := Message{Role: RoleTool, CallID: c.ID, Content: resultText(results, from+j)}
			if r := results[from+j]; r != nil {
				m.Files = r.Files
			}
			chat = append(chat, m)
		}
		text = ""
	}
	return chat
}

// resultText is what the model reads as the result of call j. Calls run one
// after another, so behind an unanswered call none has been started, unless a
// later one has a result.
func resultText(results []*claybot.Record, j int) string {
	if r := results[j]; r != nil {
		switch {
		case r.Text != "":
			return valid(CutResult(r.Text, r.Saved))
		case r.Interrupted:
			return inDoubt
		}
		return noOutput
	}
	none := func(r *claybot.Record) bool { return r == nil }
	if slices.ContainsFunc(results[:j], none) && !slices.ContainsFunc(results[j:], func(r *claybot.Record) bool { return r != nil }) {
		return neverStarted
	}
	return inDoubt
}

// repairCall makes a call acceptable to providers: an id that no other call of
// the chat has, a name of allowed characters, arguments that are an object.
func repairCall(c claybot.ToolCall, used map[string]bool) claybot.ToolCall {
	c.ID = RepairCallID(c.ID, "", used)
	c.Name = repairName(c.Name)
	switch {
	case strings.TrimSpace(c.Args) == "":
		c.Args = "{}"
	case !object(c.Args):
		// Some servers parse the arguments of old calls and refuse the
		// request; the model still sees what it wrote.
		b, _ := json.Marshal(map[string]string{"invalid_arguments": valid(c.Args)}) // strings always marshal
		c.Args = string(b)
	}
	return c
}

// RepairCallID returns id, or where it is missing, in use or no id that all
// providers accept, one derived from it and seed. It adds the result to used.
func RepairCallID(id, seed string, used map[string]bool) string {
	for n := 0; !validCallID(id) || used[id]; n++ {
		h := fnv.New64a()
		_, _ = fmt.Fprintf(h, "%s\x00%s\x00%d", id, seed, n) // a hash takes everything
		id = fmt.Sprintf("call_%016x", h.Sum64())
	}
	used[id] = true
	return id
}

func repairName(name string) string {
	if validName(name) {
		return name
	}
	b := []byte(name)
	if len(b) > maxName {
		b = b[:maxName]
	}
	for i, c := range b {
		if !nameByte(c) {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "unknown"
	}
	return string(b)
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
