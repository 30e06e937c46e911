package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
)

// Settings are the settings of one file. Err keeps the first error.
type Settings struct {
	Fields map[string]configs.Field
	// Notes are mistakes that do not prevent the task from running.
	Notes []connectors.Problem
	Err   error // a *configs.LineError
}

// ReadSettings reads the known settings of a front matter. aliases are alternative
// names. An empty setting counts as not set.
func ReadSettings(fields []configs.Field, known []string, aliases map[string]string) *Settings {
	s := &Settings{Fields: make(map[string]configs.Field)}
	for _, f := range fields {
		key := f.Key
		if a, ok := aliases[key]; ok {
			key = a
		}
		f.Value = strings.TrimSpace(f.Value)
		if other, twice := s.Fields[key]; twice {
			s.Fail(f, "%s and %s are the same setting; leave one of them out", other.Key, f.Key)
		}
		if !slices.Contains(known, key) {
			s.Notes = append(s.Notes, connectors.Problem{Line: f.Line, Text: fmt.Sprintf("the setting %s is not known and has no effect", f.Key)})
			continue
		}
		if f.Value != "" {
			s.Fields[key] = f
		}
	}
	return s
}

// Fail records an error in the line of a setting.
func (s *Settings) Fail(f configs.Field, format string, args ...any) {
	if s.Err == nil {
		s.Err = &configs.LineError{Line: f.Line, Text: fmt.Sprintf(format, args...)}
	}
}

// Text returns the value of a setting; empty if not set.
func (s *Settings) Text(key string) string { return s.Fields[key].Value }

// Read calls use with the value of a setting, if it is set.
func (s *Settings) Read(key string, use func(string) error) {
	f, ok := s.Fields[key]
	if !ok {
		return
	}
	if err := use(f.Value); err != nil {
		s.Fail(f, "%s: %v", key, err)
	}
}

// Flag returns a boolean setting; usual is the default.
func (s *Settings) Flag(key string, usual bool) bool {
	v := usual
	s.Read(key, func(text string) error {
		switch strings.ToLower(text) {
		case "true", "yes", "on":
			v = true
		case "false", "no", "off":
			v = false
		default:
			return fmt.Errorf("%.40q is not one of true and false", text)
		}
		return nil
	})
	return v
}
