package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
)

// Required trims the field of an input and refuses what is empty or longer than limit
// bytes. Errors are for the model.
func Required(field, s string, limit int) (string, error) {
	s, err := Optional(field, s, limit)
	if err == nil && s == "" {
		err = fmt.Errorf("field %s: must not be empty", field)
	}
	return s, err
}

// Optional trims the field of an input and refuses what is longer than limit bytes.
func Optional(field, s string, limit int) (string, error) {
	s = strings.TrimSpace(s)
	if len(s) > limit {
		return "", fmt.Errorf("field %s: %d bytes, the limit is %d", field, len(s), limit)
	}
	return s, nil
}

// Short is s as one line of at most limit bytes, and a sign when it was longer.
func Short(s string, limit int) string {
	whole := true
	if few := 8 * limit; len(s) > few { // megabytes are not worth reading
		s, whole = s[:few], false
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s, whole = s[:limit], false
	}
	if whole {
		return s
	}
	for s != "" { // the cut may have hit the middle of a character
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size != 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "…"
}

// UndoCall is the call of a tool that undoes an effect. args must marshal.
func UndoCall(tool string, args any) *claybot.ToolCall {
	b, _ := json.Marshal(args)
	return &claybot.ToolCall{Name: tool, Args: string(b)}
}
