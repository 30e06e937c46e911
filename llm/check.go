package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// Limits that the strictest known providers set.
const (
	// MaxCalls is how many calls one assistant message may hold.
	MaxCalls = 128
	maxName  = 64 // bytes of a tool name
	maxID    = 40 // bytes of a call id
)

// Check reports what the strictest known provider would refuse in a chat. The
// chat has no system message; that one belongs to the request. The rules: it
// begins with the user and does not end with the assistant; no turn is empty;
// each call has an id of its own, a proper name and an object as arguments, and
// is answered directly after its message, once; nothing else is answered.
func Check(chat []Message) error {
	if len(chat) == 0 {
		return errors.New("chat is empty")
	}
	if chat[0].Role != RoleUser {
		return fmt.Errorf("message 0: begins with role %q", chat[0].Role)
	}
	ids := map[string]bool{}
	open := map[string]bool{} // calls of the last assistant message without a result
	for i, m := range chat {
		if len(open) > 0 && m.Role != RoleTool {
			return fmt.Errorf("message %d: %d calls before it have no result", i, len(open))
		}
		if err := checkMessage(m, ids, open); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	switch {
	case len(open) > 0:
		return fmt.Errorf("%d calls at the end have no result", len(open))
	case chat[len(chat)-1].Role == RoleAssistant:
		return errors.New("chat ends with the assistant")
	}
	return nil
}

func checkMessage(m Message, ids, open map[string]bool) error {
	if !utf8.ValidString(m.Content) {
		return errors.New("content is not UTF-8")
	}
	if m.Content == "" && len(m.Calls) == 0 {
		return fmt.Errorf("role %q without content", m.Role)
	}
	if m.Role != RoleAssistant && len(m.Calls) > 0 {
		return fmt.Errorf("role %q with calls", m.Role)
	}
	if m.Role != RoleTool && m.CallID != "" {
		return fmt.Errorf("role %q with a call id", m.Role)
	}
	switch m.Role {
	case RoleUser:
		return nil
	case RoleAssistant:
		return checkCalls(m.Calls, ids, open)
	case RoleTool:
		if !open[m.CallID] {
			return fmt.Errorf("result for call %q, which is not open", m.CallID)
		}
		delete(open, m.CallID)
		return nil
	}
	return fmt.Errorf("role %q is not allowed here", m.Role)
}

func checkCalls(calls []claybot.ToolCall, ids, open map[string]bool) error {
	if len(calls) > MaxCalls {
		return fmt.Errorf("%d calls, allowed are %d", len(calls), MaxCalls)
	}
	for _, c := range calls {
		switch {
		case !validCallID(c.ID):
			return fmt.Errorf("call id %q", c.ID)
		case ids[c.ID]:
			return fmt.Errorf("call id %q occurs twice", c.ID)
		case !validName(c.Name):
			return fmt.Errorf("call %q: tool name %q", c.ID, c.Name)
		case !object(c.Args):
			return fmt.Errorf("call %q: arguments are not a JSON object", c.ID)
		}
		ids[c.ID], open[c.ID] = true, true
	}
	return nil
}

// CheckTools reports a tool list that providers refuse: bad or repeated names,
// or parameters that are no JSON object.
func CheckTools(tools []Tool) error {
	if len(tools) > MaxCalls {
		return fmt.Errorf("%d tools, allowed are %d", len(tools), MaxCalls)
	}
	names := map[string]bool{}
	for _, t := range tools {
		switch {
		case !validName(t.Name):
			return fmt.Errorf("tool name %q", t.Name)
		case names[t.Name]:
			return fmt.Errorf("tool name %q occurs twice", t.Name)
		case len(t.Parameters) > 0 && !object(string(t.Parameters)):
			return fmt.Errorf("tool %s: parameters are not a JSON object", t.Name)
		}
		names[t.Name] = true
	}
	return nil
}

func validName(s string) bool {
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// validCallID accepts visible ASCII; servers use other letters than names have.
func validCallID(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return s != "" && len(s) <= maxID
}

func object(s string) bool {
	return strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), "{") && utf8.ValidString(s) && json.Valid([]byte(s))
}
