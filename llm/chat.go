package llm

import (
	"slices"

	"github.com/claybot/claybot"
)

// A Chat makes the messages of a conversation that grows, and makes those of its settled
// records only once: a turn costs what is new, not all that was said. The zero value is
// ready. It belongs to one goroutine at a time.
type Chat struct {
	kept     bool // something is settled; what follows is about it
	tools    bool
	order    order
	done     int             // before this place in the history, each call has its result
	messages []Message       // the first settled of them are what the records before done became
	settled  int             // messages
	answered int             // messages; the model has not answered those after them
	used     map[string]bool // ids of the calls in messages
	size     int             // of the settled messages
}

// An order is how a model reads a history: the newest summary after the most recent
// start or reset, and the records from first on, without older summaries.
type order struct {
	summary int // its place; -1: there is none
	first   int
}

func orderOf(history []claybot.Record) order {
	for i := len(history) - 1; i >= 0; i-- {
		switch history[i].Type {
		case claybot.RecordStart, claybot.RecordReset:
			return order{-1, i + 1}
		case claybot.RecordSummary:
			begin := len(history) - len(claybot.Restored(history))
			return order{i, max(i-max(history[i].Keep, 0), begin)}
		}
	}
	return order{-1, 0}
}

// Messages is what the function of this name makes of a history, or with tools false
// MessagesWithoutTools. The history begins with the records of the call before. The
// first settled records stay in all further histories; others may be replaced. The
// result is valid until the next call.
func (c *Chat) Messages(history []claybot.Record, tools bool, settled int) []Message {
	c.begin(history, tools)
	results, done := pair(history, c.done, settled)
	for i := c.done; i <= len(history); i++ {
		if i == done && c.order.first <= settled && c.order.summary < settled {
			c.settle(done)
		}
		if i < len(history) {
			c.add(&history[i], results[i])
		}
	}
	switch n := len(c.messages); {
	case n == 0:
		c.messages = append(c.messages, Message{Role: RoleUser, Content: noBeginning})
	case c.messages[n-1].Role == RoleAssistant:
		// Several servers refuse a chat that ends with the assistant's turn.
		c.messages = append(c.messages, Message{Role: RoleUser, Content: goOn})
	}
	return c.messages
}

// begin forgets what is not settled, or everything where another summary or reset counts.
func (c *Chat) begin(history []claybot.Record, tools bool) {
	if o := orderOf(history); !c.kept || c.order != o || c.tools != tools {
		*c = Chat{tools: tools, order: o, done: o.first, messages: make([]Message, 0, len(history)-o.first+2), used: make(map[string]bool)}
		if o.summary >= 0 {
			c.messages = append(c.messages, Message{Role: RoleUser, Content: summaryText(history[o.summary])})
		}
		c.answered = len(c.messages)
		return
	}
	for _, m := range c.messages[c.settled:] {
		for _, call := range m.Calls {
			delete(c.used, call.ID)
		}
	}
	c.messages, c.answered = c.messages[:c.settled], c.settled
}

// add adds what a record becomes.
func (c *Chat) add(r *claybot.Record, results []*claybot.Record) {
	switch r.Type {
	case claybot.RecordUser:
		c.messages = append(c.messages, Message{ID: string(r.MessageID), Role: RoleUser, Content: userText(r), Files: r.Files})
	case claybot.RecordSystem:
		c.messages = append(c.messages, Message{ID: string(r.MessageID), Role: RoleUser, Content: systemText(r), Files: r.Files})
	case claybot.RecordIndex:
		if r.Text != "" { // what the model has to answer stays the newest
			c.messages = slices.Insert(c.messages, c.answered, Message{ID: IndexMessage, Role: RoleUser, Content: indexText(r)})
			c.answered++
		}
	case claybot.RecordAssistant:
		if len(c.messages) == 0 {
			c.messages = append(c.messages, Message{Role: RoleUser, Content: noBeginning})
		}
		if c.tools && len(r.ToolCalls) > 0 {
			c.messages = appendCalls(c.messages, *r, results, c.used)
		} else if r.Text != "" {
			c.messages = append(c.messages, Message{Role: RoleAssistant, Content: valid(r.Text), State: r.State})
		}
		c.answered = len(c.messages)
	case claybot.RecordTool:
		c.answered = len(c.messages)
	}
}

// settle keeps the messages so far, and what providers make of them.
func (c *Chat) settle(done int) {
	kept := make([]encoding, len(c.messages)-c.settled)
	for i := range kept {
		m := &c.messages[c.settled+i]
		m.encoding = &kept[i]
		c.size += messageCost + 2*len(m.Content) + 2*callBytes(m.Calls) + 2*m.State.Size()
	}
	c.kept, c.done, c.settled = true, done, len(c.messages)
}

// messageCost is about what a message takes beside its texts, in bytes of memory.
const messageCost = 256

// Size is about how much memory the settled messages take, in bytes.
func (c *Chat) Size() int { return c.size }

// pair finds the results of the calls of each assistant record from a place on, by its
// place in history; nil where there is none. A result belongs to the most recent
// assistant record before it of the same run that still waits for its id; other results are
// strays: when another run follows, what was not answered never will be.
// Each call before done, which is limit at most, has its result before done, and each
// message its answer: a change of the index may still come before it.
func pair(history []claybot.Record, from, limit int) (results map[int][]*claybot.Record, done int) {
	type place struct{ record, call int }
	results = map[int][]*claybot.Record{}
	open, waiting, run := map[string][]place{}, 0, claybot.RunID("")
	done = from
	for i := from; i < len(history); i++ {
		r := &history[i]
		if waiting > 0 && r.Run != "" && r.Run != run {
			clear(open)
			waiting = 0
		}
		switch r.Type {
		case claybot.RecordAssistant:
			if len(r.ToolCalls) > 0 {
				results[i], run = make([]*claybot.Record, len(r.ToolCalls)), r.Run
			}
			// Last call first, because the end of the list is answered next
			// and equal ids of one record are answered in the order of calls.
			for j := len(r.ToolCalls) - 1; j >= 0; j-- {
				id := r.ToolCalls[j].ID
				open[id] = append(open[id], place{i, j})
				waiting++
			}
		case claybot.RecordTool:
			if all := open[r.ToolCallID]; len(all) > 0 {
				at := all[len(all)-1]
				open[r.ToolCallID] = all[:len(all)-1]
				results[at.record][at.call] = r
				waiting--
			}
		}
		if answered := r.Type == claybot.RecordAssistant || r.Type == claybot.RecordTool; answered && waiting == 0 && i < limit {
			done = i + 1
		}
	}
	return results, done
}

// An encoding is a message as the API of a provider takes it, kept beside a message that
// stays as it is.
type encoding struct {
	api  string
	text []byte
}

// Encoded returns the message as an API takes it: what encode made of it, which for a
// settled message of a Chat is called once. It must depend on nothing but the message and
// the name. A message with images or documents is always encoded anew.
func (m *Message) Encoded(api string, encode func() ([]byte, error)) ([]byte, error) {
	e := m.encoding
	if e == nil || len(m.Images)+len(m.Documents) > 0 {
		return encode()
	}
	if e.api != api {
		b, err := encode()
		if err != nil {
			return nil, err
		}
		e.api, e.text = api, b
	}
	return e.text, nil
}
