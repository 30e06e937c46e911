// Package chat holds the tool with which an agent reads further back in the chat where it
// answers: read_chat. What it returns is untrusted.
//
// Only cmd imports it.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

const (
	usualLimit = 20
	maxLimit   = 50
	maxID      = 200
	maxText    = 2000     // bytes of one message
	maxPage    = 16 << 10 // of all of them
)

// Tools are all tools of this package.
func Tools(c tools.Chats) []tools.Tool { return []tools.Tool{readChat(c)} }

func readChat(c tools.Chats) tools.Tool {
	type input struct {
		Before  string `json:"before,omitempty" jsonschema:"the id of a message: reads what was said before it; absent: before the message that you answer"`
		Channel bool   `json:"channel,omitempty" jsonschema:"true: reads the channel and not the thread"`
		Limit   int    `json:"limit,omitempty" jsonschema:"how many messages, 1 to 50; 20 when absent"`
	}
	s := tools.Spec{
		Tool: llm.Tool{Name: "read_chat", Description: "Reads earlier messages of this chat: of the thread in which you answer, or of its channel. " +
			"Returns one message a line, the oldest first, and how to read older ones."},
		Effect: tools.ReadOnly, Scopes: []string{"chat"},
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		switch {
		case in.Limit < 0 || in.Limit > maxLimit:
			return tools.Result{}, fmt.Errorf("field limit: %d, want 1 to %d", in.Limit, maxLimit)
		case in.Limit == 0:
			in.Limit = usualLimit
		}
		before, err := tools.Optional("before", in.Before, maxID)
		if err != nil {
			return tools.Result{}, err
		}
		said, more, err := c.Said(ctx, env, tools.ChatPage{Channel: in.Channel, Before: before, Limit: in.Limit})
		if err != nil {
			return tools.Result{}, err
		}
		return page(said, more), nil
	})
}

// page shows messages, the newest of those that fit a page.
func page(said []claybot.Said, more bool) tools.Result {
	var lines []string
	left, first := maxPage, len(said)
	for i, m := range slices.Backward(said) {
		l := line(m)
		if left -= len(l); left < 0 && i < len(said)-1 {
			more = true
			break
		}
		lines, first = append(lines, l), i
	}
	switch {
	case len(lines) > 0 && more:
		lines = append(lines, fmt.Sprintf("(there are older messages: before=%s)", said[first].ID))
	case more:
		return tools.Result{Text: "(there are older messages, but too far back to be read)"}
	case len(lines) == 0:
		return tools.Result{Text: "(nothing was said before)"}
	}
	slices.Reverse(lines)
	return tools.Result{Text: strings.Join(lines, "\n"), Untrusted: true}
}

// line is one message, as the model reads it.
func line(m claybot.Said) string {
	l := struct {
		ID     string `json:"id"`
		Time   string `json:"time"`
		Sender string `json:"sender,omitempty"`
		Name   string `json:"name,omitempty"`
		By     string `json:"by,omitempty"`
		Text   string `json:"text"`
	}{ID: m.ID, Time: m.At.Time().UTC().Format(time.RFC3339), Sender: m.UserID, Name: m.Name}
	switch {
	case m.Bot:
		l.By = "a program"
	case m.Outsider:
		l.By = "an outsider"
	}
	l.Text = llm.Cut(m.Text, maxText, maxText/2, func(left int) string { return llm.LeftOut(left, len(m.Text)) })
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(l) // strings always encode
	return strings.TrimSuffix(b.String(), "\n")
}
