package configs

import (
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// Prompts say how the prompts of profiles are filled in.
type Prompts struct {
	// Strict: a name that is not defined is an error, not an empty text.
	Strict bool `key:"strict"`
	// Env are the variables of the environment that prompts may show. None of
	// them holds a secret that the configuration knows of.
	Env []string `key:"env" local:"yes" class:"narrowing" kind:"prompt variables" off:"-"`
}

// shownEnv are the variables of prompts.env, without those that no model must
// see.
func shownEnv(r *reader) []string {
	var list []string
	for _, it := range r.promptEnv {
		value, _ := r.lookup(it.text)
		_, err := forms["variable"].parse(it.text)
		switch {
		case err != nil:
			r.refuse(it.at, err)
		case secretVariable(it.text) || r.secrets[it.text] || secretive(value) || passURL.MatchString(value):
			r.warn(it.at, "%s holds a secret, or its name says so; no prompt may show it; ignored", quote(it.text))
		default:
			list = appendNew(list, it.text)
		}
	}
	return list
}

// passURL is an address with a password in it, somewhere in a value.
var passURL = lazyregexp.New(`://[^\s/?#]*:[^\s]*@`)

// secretVariable reports names that claybot reads secrets from, and those that
// secrets usually have.
func secretVariable(name string) bool {
	name = strings.ToUpper(name)
	if slices.Contains([]string{"OTEL_EXPORTER_OTLP_HEADERS", "OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN", "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN", "SLACK_REFRESH_TOKEN", "SLACK_CLIENT_SECRET", "DISCORD_BOT_TOKEN"}, name) {
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
