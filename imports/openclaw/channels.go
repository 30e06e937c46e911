package openclaw

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claybot/claybot/imports"
	"github.com/claybot/claybot/platforms"
)

// channels reads the accounts, and who may write to them.
func (r *reader) channels() {
	all := r.config.At("channels")
	listed := true
	for _, name := range all.Keys() {
		c := all.At(name)
		switch {
		case name == "defaults" || name == "modelByChannel" || !c.Object():
		case c.At("enabled").Is(false):
			r.Leave(name, "it is switched off there")
		case !imports.Platform(name):
			r.Leave(name, "claybot has no connector for it")
		case r.account(name, c):
			policy := cmp.Or(c.At("dmPolicy").Text(), c.At("dm", "policy").Text())
			listed = listed && policy == "allowlist"
		}
	}
	r.Listed = listed && len(r.Accounts) > 0
}

// account reads the default account of a platform, and reports whether it is imported.
func (r *reader) account(name string, c imports.Value) bool {
	accounts := c.At("accounts")
	main := cmp.Or(c.At("defaultAccount").Text(), "default")
	if ids := accounts.Keys(); len(ids) > 0 && !slices.Contains(ids, main) {
		if main = ids[0]; r.hasToken(name, c) {
			main = "default"
		}
	}
	get := func(keys ...string) imports.Value {
		if v := accounts.At(main).At(keys...); v.There() {
			return v
		}
		return c.At(keys...)
	}
	for _, id := range accounts.Keys() {
		if id != main {
			r.Leave(name+" account "+id, "only the account "+main+" is imported; add it below connectors, see docs/connectors.md")
		}
	}
	if get("mode").Text() == "http" {
		r.Leave(name, "it takes events over HTTP there; set it up by hand, see docs/slack.md")
		return false
	}
	secrets, why := r.tokens(name, get)
	if why != "" {
		r.Leave(name, why)
		return false
	}
	if !r.AddAccount(name, secrets...) {
		return false
	}
	r.people(name, main, get)
	if get("groups").There() || get("guilds").There() || get("channels").There() {
		r.Leave(name+" groups", "access for a group is for all of its members; approve it in the group, see docs/access.md")
	}
	if get("webhookUrl").There() {
		r.Leave(name+" webhook", "claybot asks Telegram for updates; see telegram.receive in docs/configuration.md")
	}
	return true
}

func (r *reader) hasToken(name string, c imports.Value) bool {
	return slices.ContainsFunc(tokenKeys[name], func(k tokenKey) bool { return c.At(k.key).There() })
}

// A tokenKey is where a token stands, and the variable that holds it otherwise.
type tokenKey struct{ key, variable string }

var tokenKeys = map[string][]tokenKey{
	platforms.Telegram: {{"botToken", "TELEGRAM_BOT_TOKEN"}},
	platforms.Slack:    {{"botToken", "SLACK_BOT_TOKEN"}, {"appToken", "SLACK_APP_TOKEN"}},
	platforms.Discord:  {{"token", "DISCORD_BOT_TOKEN"}},
}

// tokens returns the tokens of an account, or why one cannot be had.
func (r *reader) tokens(name string, get func(...string) imports.Value) (all []imports.Secret, why string) {
	for _, k := range tokenKeys[name] {
		var s imports.Secret
		file := get("tokenFile").Text()
		switch v := get(k.key); {
		case v.There():
			s, why = r.secret(v)
		case file != "":
			s, why = r.file(imports.ValueOf(map[string]any{"path": file, "mode": "singleValue"}), "value")
		default:
			s, _ = r.variable(k.variable)
		}
		if why != "" {
			return nil, k.key + ": " + why
		}
		all = append(all, s)
	}
	return all, ""
}

// people reads who may write to an account: the list of the configuration, and who was paired.
func (r *reader) people(name, account string, get func(...string) imports.Value) {
	ids := get("allowFrom").Texts()
	if len(ids) == 0 {
		ids = get("dm", "allowFrom").Texts()
	}
	paired := []string{"credentials/" + name + "-" + strings.ToLower(account) + "-allowFrom.json"}
	if account == "default" {
		paired = append(paired, "credentials/"+name+"-allowFrom.json")
	}
	for _, file := range paired {
		if !r.dir.Has(file) {
			continue
		}
		v, err := r.dir.JSON5(file)
		switch version := v.At("version"); {
		case err != nil:
			r.Leave("paired users of "+name, err.Error())
		case version.There() && version.Text() != "1":
			r.Leave(file, "it has version "+version.Scalar()+"; claybot reads version 1")
		default:
			ids = append(ids, v.At("allowFrom").Texts()...)
		}
	}
	r.AddAllowed(name, ids)
}
