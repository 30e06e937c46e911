package provider

import (
	"regexp"
	"strings"
)

var (
	urlPattern = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+`)
	keyPattern = regexp.MustCompile(`(?i)\b(sk|key|bearer|token|api[_-]?key)[-_ :=]+[A-Za-z0-9._*-]{6,}`)
)

// A Redactor makes what a provider says fit for errors and logs.
type Redactor struct{ known *strings.Replacer }

// NewRedactor returns one that knows a key, and the values of headers.
func NewRedactor(key string, headers map[string]string) Redactor {
	var pairs []string
	add := func(secret string, atLeast int) {
		if len(secret) >= atLeast {
			pairs = append(pairs, secret, "[redacted]")
		}
	}
	add(key, 4)
	for _, v := range headers {
		add(v, 8)
		if _, token, ok := strings.Cut(v, " "); ok {
			add(token, 8)
		}
	}
	return Redactor{strings.NewReplacer(pairs...)}
}

// Short makes a message one line of at most 200 characters, without addresses
// and without what is or looks like a key.
func (d Redactor) Short(s string) string {
	s = strings.ToValidUTF8(s, "")
	if d.known != nil {
		s = d.known.Replace(s)
	}
	s = keyPattern.ReplaceAllString(urlPattern.ReplaceAllString(s, "[address]"), "[redacted]")
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}
