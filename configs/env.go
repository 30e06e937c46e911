package configs

import (
	"fmt"
	"slices"
	"strings"
)

// A variable is one setting of the environment.
type variable struct {
	name string
	set  func(r *reader, at place, v string, c *Config)
}

func variables() []variable {
	return append([]variable{
		{"CLAYBOT_DATA_DIR", func(_ *reader, _ place, v string, c *Config) { c.DataDir = v }},
		{"CLAYBOT_HTTP_ADDR", func(r *reader, at place, v string, c *Config) { r.listen(at, v, c) }},
		{"CLAYBOT_HTTP_HOSTS", func(r *reader, at place, v string, c *Config) { c.HTTP.Hosts = r.hosts(commas(at, v)) }},
		{"CLAYBOT_HTTP_TLS_CERT", func(_ *reader, _ place, v string, c *Config) { c.HTTP.Guard.TLSCert = v }},
		{"CLAYBOT_HTTP_TLS_KEY", func(_ *reader, _ place, v string, c *Config) { c.HTTP.Guard.TLSKey = v }},
		{"CLAYBOT_HTTP_PROXIES", func(r *reader, at place, v string, c *Config) { c.HTTP.Guard.Proxies = r.prefixes(commas(at, v)) }},
		{"CLAYBOT_HTTP_INSECURE", func(r *reader, at place, v string, c *Config) {
			yes, ok := r.flag(at, v, "1", "0")
			store(&c.HTTP.Guard.Insecure, yes, ok)
		}},
		{"CLAYBOT_ACCESS", func(r *reader, at place, v string, c *Config) { r.mode(at, v, &c.Access) }},
		{"CLAYBOT_ALLOW", func(r *reader, at place, v string, c *Config) { c.Access.Allow = r.allowed(commas(at, v)) }},
		{"CLAYBOT_LOG", func(r *reader, at place, v string, c *Config) { r.log(at, v, c) }},
		{"CLAYBOT_LOG_LEVEL", func(r *reader, at place, v string, c *Config) { r.level(at, v, c) }},
		{"CLAYBOT_MODEL", func(r *reader, at place, v string, c *Config) { r.model(at, v, &c.Model) }},
		{"OPENAI_API_KEY", func(_ *reader, at place, v string, c *Config) { c.Model.env.openAI = NewSecret(at.key, v) }},
		{"OPENAI_BASE_URL", func(r *reader, at place, v string, c *Config) {
			u, ok := r.url(at, v)
			store(&c.Model.env.base, u, ok)
		}},
		{"ANTHROPIC_API_KEY", func(_ *reader, at place, v string, c *Config) { c.Model.env.anthropic = NewSecret(at.key, v) }},
		{"TELEGRAM_BOT_TOKEN", func(_ *reader, at place, v string, c *Config) { c.Connectors.Telegram.Token = NewSecret(at.key, v) }},
		{"TELEGRAM_API_URL", func(r *reader, at place, v string, c *Config) { r.telegramURL(at, v, &c.Connectors.Telegram) }},
		{"SLACK_BOT_TOKEN", func(_ *reader, at place, v string, c *Config) { c.Connectors.Slack.BotToken = NewSecret(at.key, v) }},
		{"SLACK_APP_TOKEN", func(_ *reader, at place, v string, c *Config) { c.Connectors.Slack.AppToken = NewSecret(at.key, v) }},
		{"SLACK_API_URL", func(r *reader, at place, v string, c *Config) { r.slackURL(at, v, &c.Connectors.Slack) }},
	}, slices.Concat(telemetryVariables(), fileVariables(), storageVariables())...)
}

// commas splits a list of values with commas between them.
func commas(at place, v string) (items []item) {
	for entry := range strings.SplitSeq(v, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			items = append(items, item{at, entry})
		}
	}
	return items
}

// environment puts the variables that are set above what the file said.
func (r *reader) environment(c *Config) {
	for _, v := range variables() {
		value, ok := r.lookup(v.name)
		path := variablePaths[v.name]
		void := !ok && r.void(v.name, path)
		if !ok && !void {
			continue
		}
		at, before := place{key: v.name}, len(r.warnings)
		o := c.ownerOf(path)
		if v.name == variableBase { // it is not for every model
			o = (*baseOf)(&c.Model.env)
		}
		switch {
		case !void:
			v.set(r, at, value, c)
		case strings.HasPrefix(v.name, "CLAYBOT_STORAGE_"): // see storageVariables
			r.reject(fmt.Errorf("%s: %s", v.name, emptyVariable))
		default:
			r.warn(at, emptyVariable+"; ignored")
		}
		// Which models the accounts and the address of the environment are for is known
		// later, see modelEnviron.
		if refused := r.close(o, at, path, before); !refused && path != "model.key" && v.name != variableBase {
			o.on(path)
			r.mended(path, v.name)
		}
	}
}

// emptyVariable is what is wrong with a variable that is set to nothing.
const emptyVariable = "is set and has no value; unset it or give it one"

// void reports an address of the environment that is set to nothing: something else
// was meant than the default. The standard of OpenTelemetry takes it as not set.
func (r *reader) void(name, path string) bool {
	_, set := r.env(name)
	word := lastName(path)
	return set && !strings.HasPrefix(name, "OTEL_") && classOf(path) == Destination && (strings.HasSuffix(word, "url") || word == "data_dir")
}

const variableBase = "OPENAI_BASE_URL"

// baseOf is what the environment says about the address of models.
type baseOf providerEnv

func (e *baseOf) off(_, why string) string {
	e.fault = why
	return "models that it is for are off"
}

func (*baseOf) on(string) {}

// An Override is what the flags of the command line say; empty fields say
// nothing.
type Override struct {
	DataDir  string
	HTTP     string
	Access   string
	Log      string
	LogLevel string
	Model    string
}

// Override puts flags above everything else. Unlike a file, a command line is
// being watched as it is given, so a bad value is an error and nothing is
// applied.
func (c *Config) Override(o Override) error {
	r := &reader{env: func(string) (string, bool) { return "", false }}
	next := *c
	for _, f := range []struct {
		flag, value string
		set         func(at place, v string)
	}{
		{"--data-dir", o.DataDir, func(_ place, v string) { next.DataDir = v }},
		{"--http", o.HTTP, func(at place, v string) { next.override(r, at, v) }},
		{"--access", o.Access, func(at place, v string) { r.mode(at, v, &next.Access); next.Access.faults = nil }},
		{"--log", o.Log, func(at place, v string) { r.log(at, v, &next) }},
		{"--log-level", o.LogLevel, func(at place, v string) { r.level(at, v, &next) }},
		{"--model", o.Model, func(at place, v string) { r.model(at, v, &next.Model) }},
	} {
		if f.value != "" {
			f.set(place{key: f.flag}, f.value)
		}
	}
	var err error
	if next.DataDir, err = next.expand(next.DataDir); err != nil {
		return fmt.Errorf("--data-dir: %w", err)
	}
	if len(r.warnings) > 0 {
		text, _, _ := strings.Cut(r.warnings[0].Text, ";")
		return fmt.Errorf("%s: %s", r.warnings[0].Key, text)
	}
	if o.Model != "" {
		next.Model.part(c.Model)
		next.renameModel(c.Model.Name)
	}
	*c = next
	return nil
}

// override sets the address of the web page. What else switched the page off holds.
func (c *Config) override(r *reader, at place, v string) {
	addr, ok := r.address(at, v)
	c.HTTP.faults = c.HTTP.faults.without("http.addr")
	store(&c.HTTP.Addr, addr, ok && c.HTTP.faults == nil)
}

// renameModel gives the profiles that use the common model its new name.
func (c *Config) renameModel(old string) {
	profiles := make(map[string]Profile, len(c.Agents.Profiles))
	for name, p := range c.Agents.Profiles {
		if p.Model.Name == old {
			began := p.Model
			p.Model.Name = c.Model.Name
			p.Model.part(began)
		}
		profiles[name] = p
	}
	c.Agents.Profiles = profiles
}
