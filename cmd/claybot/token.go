package main

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

type tokenCmd struct {
	List   tokenListCmd   `cmd:"" default:"1" help:"List the tokens."`
	Create tokenCreateCmd `cmd:"" help:"Create a token for a program and print it once."`
	Rotate tokenRotateCmd `cmd:"" help:"Rotate the secret of a token, or of the owner (owner), and close connections that use the old one."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token and close connections that use it."`
}

type (
	tokenListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	tokenCreateCmd struct {
		Name    string `arg:"" help:"Name of the program: a-z, 0-9, dot, dash, underscore."`
		Scope   string `default:"read" enum:"read,operate,admin" help:"Scope of the token: read, operate (send messages, stop, retry, answer) or admin."`
		Expires string `placeholder:"WHEN" help:"Expiry, such as 12h, 90d or 2031-12-31. Default: never."`
	}
	tokenRotateCmd struct {
		Name string `arg:"" help:"Name of the token, or owner."`
	}
	tokenRevokeCmd struct {
		Name string `arg:"" help:"Name of the token."`
	}
)

// Run lists the tokens.
func (c tokenListCmd) Run(e *env) error {
	return show(e, c.JSON, to("/tokens"), func(out web.TokenList) error {
		rows := [][]string{{"NAME", "SCOPE", "CREATED", "ENDS"}}
		for _, t := range out.Tokens {
			created, ends := "-", "never"
			if t.Created != 0 {
				created = moment(t.Created.Time())
			}
			if t.Expires != 0 {
				ends = moment(t.Expires.Time())
			}
			if t.Expired {
				ends += ", over"
			}
			rows = append(rows, []string{t.Name, string(t.Scope), created, ends})
		}
		return e.table(rows)
	})
}

// Run makes a token. It alone goes to the standard output, for scripts.
func (c tokenCreateCmd) Run(e *env) error {
	in := map[string]any{"name": c.Name, "scope": c.Scope}
	if c.Expires != "" {
		at, err := expiry(c.Expires, time.Now())
		if err != nil {
			return usageError{err}
		}
		in["expires"] = claybot.At(at)
	}
	out, err := ask[web.TokenView](e, "POST", to("/tokens"), in)
	if err != nil {
		return err
	}
	return e.secret(out, "The token of %s. It is shown only once; its holder may %s.\n")
}

// Run gives a token a new secret.
func (c tokenRotateCmd) Run(e *env) error {
	out, err := ask[web.TokenView](e, "POST", at(tokenPath(c.Name, "rotate")), nil)
	if err != nil {
		return err
	}
	if out.Token != "" {
		return e.secret(out, "The new token of %s. It is shown only once; the old one no longer works. Its holder may %s.\n")
	}
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "The owner's token is a new one, in %s. All browsers are logged out; claybot open prints a link.\n",
		filepath.Join(conf.DataDir, "web.token"))
	return err
}

// Run takes a token away.
func (c tokenRevokeCmd) Run(e *env) error {
	return e.does("DELETE", at(tokenPath(c.Name)), nil, fmt.Sprintf("Revoked the token of %s.\n", plain(c.Name)))
}

// secret prints a token, and beside it what to know about it.
func (e *env) secret(t web.TokenView, about string) error {
	may := map[web.Scope]string{
		web.Read: "see everything", web.Operate: "see everything and talk to agents", web.Admin: "do everything",
	}[t.Scope]
	fmt.Fprintf(e.err, about, plain(t.Name), may)
	_, err := fmt.Fprintln(e.out, plain(t.Token))
	return err
}

// tokenPath is the path of a token of the daemon.
func tokenPath(name string, more ...string) (string, error) {
	if name == "" || name == "." || name == ".." { // in a path they mean something else
		return "", usageError{fmt.Errorf("invalid token name %q; claybot token lists them", name)}
	}
	return "/" + strings.Join(append([]string{"tokens", url.PathEscape(name)}, more...), "/"), nil
}

// expiry reads 90d, 12h or the last day that a token holds.
func expiry(s string, now time.Time) (time.Time, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= 36500 {
			return now.AddDate(0, 0, n), nil
		}
	} else if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return now.Add(d), nil
	} else if day, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		if end := day.AddDate(0, 0, 1); end.After(now) {
			return end, nil
		}
		return time.Time{}, errors.New("that day is in the past")
	}
	return time.Time{}, fmt.Errorf("%.40q is not a time such as 12h, 90d or 2031-12-31", s)
}
