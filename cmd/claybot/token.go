package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

type tokenCmd struct {
	List   tokenListCmd   `cmd:"" default:"1" eg:"token" help:"List the tokens."`
	Create tokenCreateCmd `cmd:"" eg:"token create editor --scope chat --expires 90d" help:"Create a token for a program and print it once."`
	Rotate tokenRotateCmd `cmd:"" eg:"token rotate owner" help:"Rotate the secret of a token, or of the owner (owner), and close connections that use the old one."`
	Revoke tokenRevokeCmd `cmd:"" eg:"token revoke editor" help:"Revoke a token and close connections that use it."`
}

type (
	tokenListCmd struct {
		JSON bool `name:"json" help:"Print JSON."`
	}
	tokenCreateCmd struct {
		Name    string `arg:"" help:"Name of the program: a-z, 0-9, dot, dash, underscore."`
		Scope   string `default:"read" enum:"chat,read,operate,approve,admin" help:"Scope of the token: chat (only its own conversations, for OpenAI clients), read, operate (send messages, stop, retry, answer), approve (also approve and deny actions) or admin."`
		Expires string `placeholder:"WHEN" help:"Expiry, such as 12h, 90d or 2031-12-31. Default: never."`
		Agent   string `placeholder:"ID" help:"Agent to which a token with the scope chat is bound."`
		Profile string `placeholder:"NAME" help:"Profile to which a token with the scope chat is bound."`
		Rate    int    `placeholder:"N" help:"Requests per minute that the token may make. Default: no limit."`
		Budget  int64  `placeholder:"N" help:"Model tokens per day that the conversations of a token with the scope chat may take. Default: no limit."`
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
		return e.list("NAME,SCOPE,CREATED,EXPIRES,LIMITS", "No tokens.\n", each(out.Tokens, func(t web.TokenView) []string {
			expires := "never"
			if t.Expires != 0 {
				expires = moment(t.Expires.Time())
			}
			if t.Expired {
				expires += ", expired"
			}
			scope := string(t.Scope)
			if t.Legacy && t.Scope == web.Operate {
				scope += " and approve"
			}
			return []string{t.Name, scope, moments(t.Created), expires, tokenLimits(t.Limits)}
		}))
	})
}

// tokenLimits says in words what limits a token further than its scope; "-" for nothing.
func tokenLimits(l web.Limits) string {
	var all []string
	if l.Agent != "" {
		all = append(all, "agent "+string(l.Agent))
	}
	if l.Profile != "" {
		all = append(all, "profile "+l.Profile)
	}
	if l.Rate > 0 {
		all = append(all, fmt.Sprintf("%d requests/minute", l.Rate))
	}
	if l.Budget > 0 {
		all = append(all, fmt.Sprintf("%d tokens/day", l.Budget))
	}
	return cmp.Or(strings.Join(all, ", "), "-")
}

// Run creates a token. Only the token goes to standard output, for scripts.
func (c tokenCreateCmd) Run(e *env) error {
	in := map[string]any{"name": c.Name, "scope": c.Scope}
	for name, n := range map[string]int64{"rate": int64(c.Rate), "budget": c.Budget} {
		if n < 0 {
			return usageError{fmt.Errorf("invalid --%s %d: want a number above 0", name, n)}
		}
		if n > 0 {
			in[name] = n
		}
	}
	if c.Agent != "" {
		if _, err := ask[web.AgentView](e, "GET", at(agentPath(claybot.AgentID(c.Agent))), nil); err != nil {
			return err
		}
		in["agent"] = c.Agent
	}
	if c.Profile != "" {
		in["profile"] = c.Profile
	}
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
	return e.secret(out, "The token of %s. It is shown only once; it allows its holder to %s.\n")
}

// Run rotates the secret of a token.
func (c tokenRotateCmd) Run(e *env) error {
	out, err := ask[web.TokenView](e, "POST", at(tokenPath(c.Name, "rotate")), nil)
	if err != nil {
		return err
	}
	if out.Token != "" {
		return e.secret(out, "The new token of %s. It is shown only once; the old one no longer works. It allows its holder to %s.\n")
	}
	conf, _, err := e.load()
	if err != nil {
		return err
	}
	return e.text(fmt.Sprintf("Rotated the owner's token; the new one is in %s. All browsers are logged out; claybot open prints a login link.\n",
		filepath.Join(conf.DataDir, "web.token")))
}

// Run revokes a token.
func (c tokenRevokeCmd) Run(e *env) error {
	return e.does("DELETE", at(tokenPath(c.Name)), nil, fmt.Sprintf("Revoked the token of %s.\n", plain(c.Name)))
}

// secret prints a token, and a hint about it to standard error.
func (e *env) secret(t web.TokenView, about string) error {
	may := map[web.Scope]string{
		web.Chat: "message agents and see its own conversations", web.Read: "see everything", web.Operate: "see everything and talk to agents",
		web.Approve: "see everything, talk to agents and approve actions", web.Admin: "do everything",
	}[t.Scope]
	fmt.Fprintf(e.err, about, plain(t.Name), may)
	_, err := fmt.Fprintln(e.out, plain(t.Token))
	return err
}

// expiry parses 90d, 12h or the last day of validity.
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
		return time.Time{}, fmt.Errorf("invalid expiry %s: that day is in the past", s)
	}
	return time.Time{}, fmt.Errorf("invalid expiry %.40q: want a time such as 12h, 90d or 2031-12-31", s)
}
