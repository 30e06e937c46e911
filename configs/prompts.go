package configs

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Prompts say how the prompts of profiles are filled in.
type Prompts struct {
	// Strict: a name that is not defined is an error, not an empty text.
	Strict bool
	// Env are the variables of the environment that prompts may show. None of
	// them holds a secret that the configuration knows of.
	Env []string
}

func promptKeys() []key[Config] {
	return []key[Config]{
		text("strict", func(r *reader, at place, v string, c *Config) { r.truth(at, v, &c.Agents.Prompts.Strict) }),
		// Which variables hold secrets is known at the end of the file.
		{"env", func(r *reader, at place, n *yaml.Node, _ *Config) { r.promptEnv, _ = r.list(at, n) }},
	}
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) // and at most 128 bytes

// shownEnv are the variables of prompts.env, without those that no model must
// see.
func (r *reader) shownEnv() []string {
	var list []string
	for _, it := range r.promptEnv {
		value, _ := r.lookup(it.text)
		switch {
		case len(it.text) > 128 || !variableForm.MatchString(it.text):
			r.warn(it.at, "%s is not the name of a variable; ignored", quote(it.text))
		case secretVariable(it.text) || r.secrets[it.text] || secretive(value) || passURL.MatchString(value):
			r.warn(it.at, "%s holds a secret, or its name says so; no prompt may show it; ignored", quote(it.text))
		default:
			list = appendNew(list, it.text)
		}
	}
	return list
}

// passURL is an address with a password in it, somewhere in a value.
var passURL = regexp.MustCompile(`://[^\s/?#]*:[^\s]*@`)

// secretVariable reports names that claybot reads secrets from, and those that
// secrets usually have.
func secretVariable(name string) bool {
	name = strings.ToUpper(name)
	if slices.Contains([]string{"OTEL_EXPORTER_OTLP_HEADERS", "OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"}, name) {
		return true
	}
	for _, ending := range []string{"TOKEN", "KEY", "TOKENS", "KEYS", "PASS", "PAT", "DSN"} {
		if name == ending || strings.HasSuffix(name, "_"+ending) {
			return true
		}
	}
	for _, part := range []string{"SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "APIKEY", "DATABASE_URL"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
