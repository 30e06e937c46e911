// Package picoclaw reads the directory of picoclaw, ~/.picoclaw. It only reads.
//
// Where things are, by file of github.com/sipeed/picoclaw at commit cf67dd3851e7926bf04ea9016c2e61248f9f614e:
//
//	config.json, versions 0 to 3     pkg/config/config.go, pkg/config/migration.go, config/config.example.json
//	.security.yml                    pkg/config/security.go, docs/security/security_configuration.md
//	file:// and enc:// of secrets    pkg/credential/credential.go
//	entries of allow_from            pkg/identity/identity.go
//	workspace and its files          docs/guides/configuration.md (Workspace Layout), pkg/agent/definition.go
//	workspace/cron/jobs.json         pkg/cron/service.go, pkg/gateway/gateway.go
//	workspace/HEARTBEAT.md           pkg/heartbeat/service.go
//	skills, workspace/skills         pkg/skills/loader.go
package picoclaw

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/imports"
	"github.com/claybot/claybot/platforms"
)

// Default is the directory that picoclaw uses.
const Default = "~/.picoclaw"

const (
	configFile   = "config.json"
	securityFile = ".security.yml"
	newest       = 3 // version of the configuration
)

// A reader reads one directory.
type reader struct {
	*imports.Find
	env      imports.Env
	dir      *imports.Dir
	config   imports.Value
	security imports.Value // the secrets that stand beside the configuration
}

// Read reads a directory. The error is of one that is not picoclaw's, or whose configuration cannot be
// read or is of an unknown version.
func Read(path string, env imports.Env) (*imports.Find, error) {
	d, err := imports.OpenDir(env.Expand(path))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	r := &reader{Find: &imports.Find{Program: "picoclaw", Slug: "picoclaw", Dir: d.Path}, env: env, dir: d}
	if !d.Has(configFile) {
		return nil, fmt.Errorf("%s is not a directory of picoclaw: it has no %s", d.Path, configFile)
	}
	if r.config, err = d.JSON5(configFile); err != nil {
		return nil, err
	}
	file := filepath.Join(d.Path, configFile)
	if !r.config.Object() {
		return nil, fmt.Errorf("%s is not a configuration of picoclaw: it is no object", file)
	}
	if v := r.config.At("version"); v.There() && !slices.Contains([]string{"0", "1", "2", "3"}, v.Text()) {
		return nil, fmt.Errorf("%s has version %.20q; this claybot reads versions 0 to %d, so nothing is imported", file, v.Scalar(), newest)
	}
	if err := r.secure(); err != nil {
		return nil, err
	}
	r.models()
	r.channels()
	r.workspace()
	r.servers()
	r.rest()
	return r.Find, nil
}

// secure reads the secrets that stand in a file of their own.
func (r *reader) secure() error {
	text, err := r.dir.Read(securityFile, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	name := filepath.Join(r.dir.Path, securityFile)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	v, err := configs.ReadYAML(text)
	var line *configs.LineError
	if errors.As(err, &line) {
		return fmt.Errorf("%s:%d: it is not valid YAML", name, max(1, line.Line)) // what stands there may be a secret
	}
	r.security = imports.ValueOf(v)
	return err
}

// secret returns the secret that a text is, or why it cannot be had.
func (r *reader) secret(v string) (s imports.Secret, why string) {
	switch {
	case v == "[NOT_HERE]":
		return s, ""
	case strings.HasPrefix(v, "enc://"):
		return s, "it is encrypted; store it with claybot config set"
	case strings.HasPrefix(v, "file://"):
		text, err := r.dir.Read(filepath.Clean(strings.TrimSpace(strings.TrimPrefix(v, "file://"))), 16<<10)
		if err != nil {
			return s, "its file cannot be read: " + err.Error()
		}
		return imports.Secret{Text: strings.TrimSpace(string(text))}, ""
	}
	return imports.Secret{Text: v}, ""
}

// models reads the model of the default agent and its fallbacks.
func (r *reader) models() {
	defaults := r.config.At("agents", "defaults")
	name := defaults.First("model_name", "model").Text()
	if name == "" {
		return
	}
	first, why := r.model(name, defaults.At("provider").Text())
	if why != "" {
		r.Leave("model "+name, why)
		return
	}
	r.Model = &first
	for _, ref := range defaults.At("model_fallbacks").Texts() {
		next, why := r.model(ref, "")
		if why != "" {
			r.Leave("fallback model "+ref, why)
			continue
		}
		r.Fallback = append(r.Fallback, next)
	}
}

// model returns the model of a name in the list of models, or of provider/name.
func (r *reader) model(name, provider string) (imports.Model, string) {
	list := r.config.At("model_list").List()
	at := slices.IndexFunc(list, func(v imports.Value) bool { return v.At("model_name").Text() == name })
	var m imports.Value
	full := name
	if at >= 0 {
		m = list[at]
		full, provider = m.At("model").Text(), m.At("provider").Text()
	}
	if before, rest, ok := strings.Cut(full, "/"); ok && (provider == "" || provider == before) {
		provider, full = before, rest
	}
	if provider == "" {
		provider = "openai"
	}
	api := ""
	switch provider {
	case "anthropic-messages":
		provider, api = "anthropic", "anthropic-messages"
	case "gemini":
		provider = "google"
	}
	old := r.config.At("providers", provider) // of version 0
	base := cmp.Or(m.At("api_base").Text(), old.At("api_base").Text())
	if method := m.At("auth_method").Text(); method == "oauth" || method == "token" {
		return imports.Model{}, "picoclaw is logged in to " + provider + "; claybot needs an API key: claybot setup model"
	}
	keys := slices.Concat(r.security.At("model_list", name, "api_keys").Texts(), m.At("api_keys").Texts(), m.At("api_key").Texts(), old.At("api_key").Texts())
	var key imports.Secret
	for _, k := range keys {
		s, why := r.secret(k)
		if why != "" {
			return imports.Model{}, why
		}
		if key.Given() || !s.Given() {
			continue
		}
		key = s
	}
	return imports.NewModel(provider, full, api, base, key)
}

// channels reads the accounts, and who may write to them.
func (r *reader) channels() {
	all := r.config.First("channel_list", "channels")
	listed := true
	for _, name := range all.Keys() {
		c := all.At(name)
		kind := cmp.Or(c.At("type").Text(), name)
		switch {
		case !c.Object() || !c.At("enabled").Is(true):
			continue // the file has one for every platform
		case !imports.Platform(kind):
			r.Leave(name, "claybot has no connector for it")
			continue
		case slices.ContainsFunc(r.Accounts, func(a imports.Account) bool { return a.Connector == kind }):
			r.Leave(name, "only one account of "+kind+" is imported; add it below connectors, see docs/connectors.md")
			continue
		}
		secrets, why := r.tokens(kind, name, c)
		if why != "" {
			r.Leave(name, why)
			continue
		}
		if !r.AddAccount(kind, secrets...) {
			continue
		}
		ids := c.At("allow_from").Texts()
		if len(ids) == 0 {
			ids = []string{"*"} // as picoclaw has it
		}
		listed = !r.AddAllowed(kind, ids) && listed
	}
	r.Listed = listed && len(r.Accounts) > 0
}

// tokenKeys are where the tokens of a platform stand.
var tokenKeys = map[string][]string{platforms.Telegram: {"token"}, platforms.Slack: {"bot_token", "app_token"}, platforms.Discord: {"token"}}

// tokens returns the tokens of an account: what stands in the file of secrets counts first.
func (r *reader) tokens(kind, name string, c imports.Value) (all []imports.Secret, why string) {
	for _, key := range tokenKeys[kind] {
		text := ""
		for _, of := range []imports.Value{r.security.At("channel_list", name, "settings"), r.security.At("channel_list", name), r.security.At("channels", name, "settings"), r.security.At("channels", name), c.At("settings"), c} {
			text = cmp.Or(text, of.At(key).Text())
		}
		s, why := r.secret(text)
		if why != "" {
			return nil, key + ": " + why
		}
		all = append(all, s)
	}
	return all, ""
}

// workspace reads the texts, notes, tasks and skills.
func (r *reader) workspace() {
	named := cmp.Or(r.config.At("agents", "defaults", "workspace").Text(), Default+"/workspace")
	inside := filepath.Base(named)
	path := filepath.Join(r.dir.Path, inside) // also of a copy of the directory that is elsewhere now
	r.AddSkills(r.dir, "skills")
	switch {
	case r.dir.Folder(inside):
	case r.dir.Has(inside):
		r.Leave(inside, "it is a link that leads out of the directory")
		return
	default:
		path = r.env.Expand(named)
	}
	d, err := imports.OpenDir(path)
	if err != nil {
		r.Leave("workspace", err.Error())
		return
	}
	defer d.Close()
	r.Workspace = d.Path
	agent := "AGENT.md"
	if !d.Has(agent) {
		agent = "AGENTS.md"
	}
	r.AddPrompt(d, body, "IDENTITY.md", "SOUL.md", agent, "USER.md")
	r.AddNotes(d, d.List("memory", ".md")...)
	managed := r.Skills
	r.Skills = nil
	r.AddSkills(d, "skills")
	r.Skills = append(r.Skills, managed...)
	r.heartbeat(d.Text(r.Find, "HEARTBEAT.md"))
	r.jobs(d)
	if d.Has("sessions") {
		r.Leave("conversations", "claybot begins new ones")
	}
}

// body is the text behind the front matter, which is for picoclaw.
func body(text string) string {
	if f, err := configs.ReadManifest(text); err == nil {
		return f.Body
	}
	return text
}

// lastLine is behind the instructions that picoclaw itself writes into HEARTBEAT.md.
const lastLine = "Add your heartbeat tasks below this line:"

// heartbeat reads the checklist and its interval in minutes.
func (r *reader) heartbeat(text string) {
	if _, own, ok := strings.Cut(text, lastLine); ok {
		text = strings.TrimSpace(own)
	}
	h := r.config.At("heartbeat")
	if h.At("enabled").Is(false) {
		if text != "" {
			r.Leave("HEARTBEAT.md", "the heartbeat is switched off there")
		}
		return
	}
	minutes := h.At("interval").Number()
	if minutes <= 0 || minutes > 1e6 {
		minutes = 30
	}
	r.Checklist(text, (time.Duration(max(minutes, 5)) * time.Minute).String(), "")
}

// jobs reads the scheduled tasks.
func (r *reader) jobs(d *imports.Dir) {
	const name = "cron/jobs.json"
	if !d.Has(name) {
		return
	}
	jobs, err := d.Jobs(name)
	if err != nil {
		r.Leave("tasks", err.Error())
		return
	}
	for _, v := range jobs {
		when, payload := v.At("schedule"), v.At("payload")
		j := imports.Job{
			ID: v.At("id").Text(), Name: v.At("name").Text(), Text: strings.TrimSpace(payload.At("message").Long()),
			Kind: when.At("kind").Text(), Expr: when.At("expr").Text(), Zone: when.At("tz").Text(), Every: when.At("everyMs").Number(),
			Off: v.At("enabled").Is(false), Channel: payload.At("channel").Text(), To: payload.At("to").Text(), Once: v.At("deleteAfterRun").Is(true),
		}
		if payload.At("command").Text() != "" {
			j.Text = "" // a command of the machine
		}
		if ms := when.At("atMs").Number(); ms > 0 && ms < 1<<53 {
			j.At = time.UnixMilli(int64(ms)).UTC()
		}
		r.AddJob(j, r.env)
	}
}

// servers reads the MCP servers that are switched on.
func (r *reader) servers() {
	all := r.config.At("tools", "mcp", "servers")
	for _, name := range all.Keys() {
		switch s := all.At(name); {
		case r.config.At("tools", "mcp", "enabled").Is(true) && s.At("enabled").Is(true):
			r.AddServer(name, s, r.secret)
		case s.At("enabled").Is(true):
			r.Leave("MCP server "+name, "MCP is switched off there")
		}
	}
}

// rest names what has no place.
func (r *reader) rest() {
	for _, v := range r.config.At("agents", "list").List() {
		r.Leave("agent "+v.First("name", "id").Text(), "only the default agent is imported; make a profile for it, see docs/configuration.md")
	}
	for _, key := range []string{"evolution", "devices", "voice", "hooks"} {
		if v := r.config.At(key); v.At("enabled").Is(true) || v.At("model_name").Text() != "" {
			r.Leave(key, "claybot has other settings for it, or none; see docs/configuration.md")
		}
	}
	web := r.config.At("tools", "web")
	for _, name := range web.Keys() {
		if s := web.At(name); s.At("enabled").Is(true) && (s.At("api_key").Text() != "" || s.At("api_keys").There()) {
			r.Leave("web search with "+name, "set it with web.search, see docs/web-tools.md")
		}
	}
}
