package configs

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
)

// A Secret is a value that is never shown. Every way of printing it, with any
// verb of fmt, as JSON or YAML and in slog, gives the name of where it came
// from, such as TELEGRAM_BOT_TOKEN. The zero Secret is not set.
type Secret struct {
	name string
	// A pointer, because fmt cannot call methods on unexported fields of other
	// structs: there it prints an address instead of the value.
	value *string
}

// ReadSecret returns the secret that a reference such as env:NAME or file:path means; a path is relative
// to the configuration file.
func (c Config) ReadSecret(reference string, env func(string) (string, bool)) (string, error) {
	r := &reader{env: env, dir: filepath.Dir(c.Source.File)}
	s := r.reference(place{key: reference}, reference)
	if len(r.warnings) > 0 || s.Value() == "" {
		return "", fmt.Errorf("the secret %s cannot be read", quote(reference))
	}
	return s.Value(), nil
}

// NewSecret wraps value under the name of its origin.
func NewSecret(name, value string) Secret { return Secret{name: name, value: &value} }

// Value returns the secret itself; empty when it is not set or could not be
// read.
func (s Secret) Value() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Named reports whether the configuration names this secret, even if its value
// could not be read.
func (s Secret) Named() bool { return s.name != "" }

// String returns the name, or "(not set)".
func (s Secret) String() string {
	if s.name == "" {
		return "(not set)"
	}
	return s.name
}

// Format prints the name whatever the verb is.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) } // fmt gives no way to report

// MarshalJSON writes the name.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalText writes the name.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue logs the name.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
