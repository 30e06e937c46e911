package schedule

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
)

// Settings are the settings of one file. The first error wins.
type Settings struct {
	Fields map[string]configs.Field
	// Notes are mistakes that do not keep the task from running.
	Notes []connectors.Problem
	Err   error // a *configs.LineError
}

// ReadSettings takes the known settings of a front matter. aliases are their other
// names. An empty setting counts as none.
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

// Fail notes an error in the line of a setting.
func (s *Settings) Fail(f configs.Field, format string, args ...any) {
	if s.Err == nil {
		s.Err = &configs.LineError{Line: f.Line, Text: fmt.Sprintf(format, args...)}
	}
}

// Text is the value of a setting; empty for none.
func (s *Settings) Text(key string) string { return s.Fields[key].Value }

// Read gives the value of a setting to use; a setting that is not there is none.
func (s *Settings) Read(key string, use func(string) error) {
	f, ok := s.Fields[key]
	if !ok {
		return
	}
	if err := use(f.Value); err != nil {
		s.Fail(f, "%s: %v", key, err)
	}
}

// Flag is a setting that is true or false.
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
