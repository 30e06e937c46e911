package provider

import (
	"net/http"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/llm"
)

// StatusOverloaded is the status of a provider that has too much to do.
const StatusOverloaded = 529

// A Problem is what a server says went wrong.
type Problem struct {
	Status  int
	Message string        // in the provider's words
	KeyName string        // the variable that holds the key
	Account bool          // it is of the key or the account, not of the request
	Quota   bool          // the account's quota is used up
	TooLong bool          // the conversation does not fit
	Paid    bool          // the provider counted tokens for the answer that it ended so
	Wait    time.Duration // asked for in the body, 0 when it was not
	// Refused are the optional fields that the server never accepts, Once those that it
	// does not accept as they are in this request.
	Refused, Once uint32
}

func (p Problem) class() llm.Class {
	switch s := p.Status; {
	case p.Quota:
		return llm.Permanent
	case s == http.StatusTooManyRequests:
		return llm.Rate
	case p.TooLong:
		return llm.Context
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooEarly, s >= 500:
		return llm.Transient
	}
	return llm.Permanent
}

func (p Problem) sentence() string {
	switch s := p.Status; {
	case p.Quota:
		return "the account's quota is used up"
	case p.class() == llm.Context:
		return "the conversation is too long for the model"
	case s == http.StatusTooManyRequests:
		return "the provider limits the rate of requests"
	case s == http.StatusUnauthorized:
		return "the provider refuses the key; check " + p.KeyName
	case s == http.StatusForbidden:
		return "the provider refuses access"
	case s == http.StatusNotFound:
		return "the provider does not know the model or the address; check the model's name and the base URL"
	case s == StatusOverloaded:
		return "the provider is overloaded"
	case s >= 500:
		return "the provider failed"
	case s >= 300 && s < 400:
		return "the provider redirects in a way that is not followed; check the base URL"
	}
	return "the provider refuses the request"
}

// A Failure is a failed attempt.
type Failure struct {
	*llm.Error
	problem       *Problem // what the server said, until it is explained
	refused, once uint32
	usage         claybot.Usage // what was read before it failed
}

// Failed makes a failure.
func Failed(class llm.Class, format string, args ...any) *Failure {
	return &Failure{Error: llm.Failed(class, format, args...)}
}

// paid notes that the answer came and cannot be used. What the server says itself is no answer; see Problem.Paid.
func (f *Failure) paid() *Failure {
	if f.Error != nil {
		f.Paid = true
	}
	return f
}

// Said makes a failure of what the server says.
func Said(p Problem) *Failure { return &Failure{problem: &p} }

func (c *Client) failure(p Problem) *Failure { return c.explained(Said(p)) }

// explained turns what the server says into a class and a text without secrets.
func (c *Client) explained(f *Failure) *Failure {
	if p := f.problem; p != nil {
		text := p.sentence()
		if m := c.Redactor.Short(p.Message); m != "" {
			text += ": " + m
		}
		f.Error = &llm.Error{Class: p.class(), Account: p.Account, Text: text, Paid: p.Paid, RetryAfter: bounded(p.Wait.Seconds())}
		f.problem, f.refused, f.once = nil, p.Refused, p.Once
	}
	return f
}

var (
	urlPattern = lazyregexp.New(`(?i)\b[a-z][a-z0-9+.-]*://\S+`)
	keyPattern = lazyregexp.New(`(?i)\b(sk|key|bearer|token|api[_-]?key)[-_ :=]+[A-Za-z0-9._*-]{6,}`)
	// wordPattern is a word in a sentence about a key, such as "key provided", which is no key.
	wordPattern = lazyregexp.New(`^(?i:key|token) [a-z]{6,12}[.,;:]?$`)
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
	s = keyPattern.ReplaceAllStringFunc(urlPattern.ReplaceAllString(s, "[address]"), func(found string) string {
		if wordPattern.MatchString(found) {
			return found
		}
		return "[redacted]"
	})
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200]) + "…"
	}
	return s
}
