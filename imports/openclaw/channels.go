package openclaw

import (
	"cmp"
	"slices"
	"strings"
	"time"

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

// jobDatabase is where OpenClaw keeps tasks since 2026.6.1, not always those of its file.
const jobDatabase = "state/openclaw.sqlite"

// jobs reads the scheduled tasks.
func (r *reader) jobs() {
	name := "cron/jobs.json"
	if store := r.config.At("cron", "store").Text(); store != "" {
		inside, ok := strings.CutPrefix(r.env.Expand(store), r.dir.Path+"/")
		if !ok {
			r.Leave("tasks", "their file is outside of the directory")
			return
		}
		name = inside
	}
	if r.config.At("cron", "enabled").Is(false) {
		r.Leave("tasks", "they are switched off there")
		return
	}
	if !r.dir.Has(name) {
		if r.dir.Has(jobDatabase) {
			r.Leave("tasks", "this version of OpenClaw keeps them in a database, "+jobDatabase+"; list them with openclaw cron list, and create them with claybot cron add")
		}
		return
	}
	jobs, err := r.dir.Jobs(name)
	if err != nil {
		r.Leave("tasks", err.Error())
		return
	}
	if r.dir.Has(jobDatabase) {
		r.Leave("tasks of the database", name+" was read; newer versions of OpenClaw no longer use it: compare with openclaw cron list, and correct with claybot cron edit")
	}
	for _, v := range jobs {
		if v.At("delivery", "mode").Text() == "webhook" {
			r.Leave("task "+v.At("name").Text(), "it posts its result to an address; see docs/relay.md")
			continue
		}
		r.AddJob(r.job(v), r.env)
	}
}

func (r *reader) job(v imports.Value) imports.Job {
	when, payload, delivery := v.At("schedule"), v.At("payload"), v.At("delivery")
	j := imports.Job{
		ID: v.First("id", "jobId").Text(), Name: v.At("name").Text(), Text: strings.TrimSpace(payload.First("message", "text").Long()),
		Kind: when.At("kind").Text(), Expr: when.At("expr").Text(), Zone: when.At("tz").Text(), Every: when.At("everyMs").Number(),
		Off: v.At("enabled").Is(false), Channel: delivery.At("channel").Text(), To: delivery.At("to").Text(),
	}
	j.At = moment(when)
	j.Once = j.Kind == "at" && !v.At("deleteAfterRun").Is(false)
	if !delivery.There() { // of old versions
		j.Channel, j.To, j.Silent = payload.At("channel").Text(), payload.At("to").Text(), payload.At("deliver").Is(false)
	}
	j.Silent = j.Silent || delivery.At("mode").Text() == "none"
	if j.Channel == "" || j.Channel == "last" {
		j.To = ""
	}
	return j
}

// moment is the one time of a schedule; one without a zone is in UTC.
func moment(when imports.Value) time.Time {
	if ms := when.At("atMs").Number(); ms > 0 && ms < 1<<53 {
		return time.UnixMilli(int64(ms)).UTC()
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(form, when.At("at").Text()); err == nil {
			return t
		}
	}
	return time.Time{}
}
