package send

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

const (
	maxMessage = 16 << 10 // bytes
	maxRoute   = 200      // bytes
)

func sendMessage(m tools.Messages) tools.Tool {
	type input struct {
		To   string `json:"to,omitempty" jsonschema:"the chat as connector:channel, such as slack:T1/C1; absent: the chat where you answer"`
		Text string `json:"text" jsonschema:"the message, in Markdown"`
	}
	to := func(args json.RawMessage) string {
		var in input
		_ = json.Unmarshal(args, &in) // what does not fit is refused before
		return strings.TrimSpace(in.To)
	}
	s := tools.Spec{
		Tool: llm.Tool{Name: "send_message", Description: "Sends a message now to the chat where you answer, to another chat of your person, or to a chat that the operator lists. " +
			"Unless you are told otherwise, your answer goes to its chat by itself; do not send it with this tool. The message is on its way when this returns; do not send it again."},
		Effect: tools.Idempotent, Public: true, Class: tools.Outward, Scopes: []string{"chat"},
		Subject: to,
		Listed:  func(env tools.Env, args json.RawMessage) bool { return m.OwnChat(env, to(args)) },
		Discloses: func(ctx context.Context, env tools.Env, args json.RawMessage) *tools.Disclosure {
			return m.Tells(ctx, env, to(args))
		},
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		text, err := tools.Required("text", in.Text, maxMessage)
		if err != nil {
			return tools.Result{}, err
		}
		to, err := tools.Optional("to", in.To, maxRoute)
		if err != nil {
			return tools.Result{}, err
		}
		place, err := m.SendMessage(ctx, env, to, text)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: "the message to " + place + " is on its way", What: fmt.Sprintf(texts.DidSendMessage, place)}, nil
	})
}
