package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

const maxReason = 1000 // bytes

type permissionInput struct {
	Permission string `json:"permission" jsonschema:"@web, @read:DIRECTORY or @write:DIRECTORY, with a directory of your workspace such as docs; @read:. is all of it"`
	Reason     string `json:"reason" jsonschema:"what you need it for, in one sentence for the person"`
}

// RequestPermission is the tool request_permission. A call changes rights, so a person
// approves each one, and none runs after the agent has read untrusted content.
func RequestPermission(r tools.Rights) tools.Tool {
	s := tools.Spec{
		Tool: llm.Tool{Name: tools.RequestPermission, Description: "Asks the person you work for to permit you something that your permissions take away: " +
			"the web, or reading or writing a directory of your workspace. It waits for the decision. What is permitted stays permitted. Ask for the least that you need."},
		Effect: tools.Idempotent, Class: tools.Authority, Scopes: []string{"permissions"},
		Public: true, // it returns what the person decided
		Subject: func(args json.RawMessage) string {
			var in permissionInput
			_ = json.Unmarshal(args, &in) // what does not fit is refused before
			return in.Permission
		},
	}
	return tools.New(s, func(ctx context.Context, env tools.Env, in permissionInput) (tools.Result, error) {
		if err := r.Grant(ctx, env.Agent.ID, in.Permission); err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: in.Permission + " is permitted from now on", What: fmt.Sprintf(texts.DidGainPermission, in.Permission)}, nil
	})
}

// Requestable returns why a call of request_permission asks nobody: its arguments, or
// permissions that have the right already; nil: a person is asked.
func Requestable(p claybot.Permissions, args json.RawMessage) error {
	var in permissionInput
	if err := json.Unmarshal(args, &in); err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	if strings.TrimSpace(in.Reason) == "" || len(in.Reason) > maxReason {
		return fmt.Errorf("field reason: want 1 to %d bytes", maxReason)
	}
	wider, err := p.Widen(in.Permission)
	switch {
	case err != nil:
		return fmt.Errorf("field permission: %w", err)
	case reflect.DeepEqual(wider, p.Clone()):
		return errors.New("you have this permission already")
	}
	return nil
}
