package configs

import (
	"slices"
	"strings"
)

// aliases are names of variables that people expect, from other programs or by
// guessing, with the name that claybot reads.
var aliases = map[string]string{
	"TELEGRAM_TOKEN": "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_TOKEN": "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_KEY": "TELEGRAM_BOT_TOKEN",
	"TELEGRAM_BOT_KEY": "TELEGRAM_BOT_TOKEN", "TG_BOT_TOKEN": "TELEGRAM_BOT_TOKEN", "TG_TOKEN": "TELEGRAM_BOT_TOKEN",
	"TELEGRAM_BASE_URL": "TELEGRAM_API_URL", "TELEGRAM_URL": "TELEGRAM_API_URL",
	"SLACK_TOKEN": "SLACK_BOT_TOKEN", "SLACK_API_TOKEN": "SLACK_BOT_TOKEN", "SLACK_OAUTH_TOKEN": "SLACK_BOT_TOKEN",
	"SLACK_APP_LEVEL_TOKEN": "SLACK_APP_TOKEN", "SLACK_SOCKET_TOKEN": "SLACK_APP_TOKEN", "SLACK_BASE_URL": "SLACK_API_URL",
	"OPENAI_KEY": "OPENAI_API_KEY", "OPENAI_TOKEN": "OPENAI_API_KEY", "OPENAI_API_TOKEN": "OPENAI_API_KEY",
	"OPENAI_API_BASE": "OPENAI_BASE_URL", "OPENAI_BASE": "OPENAI_BASE_URL", "OPENAI_URL": "OPENAI_BASE_URL",
	"OPENAI_API_URL": "OPENAI_BASE_URL", "OPENAI_API_BASE_URL": "OPENAI_BASE_URL", "OPENAI_ENDPOINT": "OPENAI_BASE_URL", "OPENAI_HOST": "OPENAI_BASE_URL",
	"ANTHROPIC_KEY": "ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN": "ANTHROPIC_API_KEY", "ANTHROPIC_API_TOKEN": "ANTHROPIC_API_KEY",
	"ANTHROPIC_AUTH_TOKEN": "ANTHROPIC_API_KEY", "CLAUDE_API_KEY": "ANTHROPIC_API_KEY", "CLAUDE_KEY": "ANTHROPIC_API_KEY",
	"ANTHROPIC_BASE_URL": keyBase, "ANTHROPIC_API_URL": keyBase, "ANTHROPIC_URL": keyBase, "ANTHROPIC_API_BASE": keyBase,
	"OPENAI_MODEL": "CLAYBOT_MODEL", "ANTHROPIC_MODEL": "CLAYBOT_MODEL",
	"CLAYBOT_ADDR": "CLAYBOT_HTTP_ADDR", "CLAYBOT_HTTP": "CLAYBOT_HTTP_ADDR", "CLAYBOT_LISTEN": "CLAYBOT_HTTP_ADDR",
	"CLAYBOT_DATA": "CLAYBOT_DATA_DIR", "CLAYBOT_DIR": "CLAYBOT_DATA_DIR", "CLAYBOT_ALLOWED": "CLAYBOT_ALLOW", "CLAYBOT_ALLOWLIST": "CLAYBOT_ALLOW",
	"CLAYBOT_ACCESS_MODE": "CLAYBOT_ACCESS", "CLAYBOT_TLS_CERT": "CLAYBOT_HTTP_TLS_CERT", "CLAYBOT_TLS_KEY": "CLAYBOT_HTTP_TLS_KEY",
}

// keyBase says where the address of Anthropic's API is set: no variable does.
const keyBase = "model.base_url in the configuration file"

// otherVariables are what claybot reads, or sets for its own processes, beside the
// variables of settings.
var otherVariables = []string{"CLAYBOT_CONFIG", "CLAYBOT_TASK", "CLAYBOT_EXEC", "CLAYBOT_WRITE_DOCS", "CLAYBOT_HOST"}

// mistaken warns of the variables of the environment that claybot does not read and
// whose names are close to one that it reads. One that may say where something
// goes, or who may write, switches that off, unless the right one is set as well.
// No value is shown.
func (r *reader) mistaken(c *Config) {
	for _, name := range slices.Sorted(slices.Values(r.environ)) {
		right := r.meantVariable(name)
		if right == "" {
			continue
		}
		value, set := r.lookup(name)
		if !set || r.harmlessAddress(name, value) {
			continue
		}
		at, before := place{key: name}, len(r.warnings)
		r.warn(at, "claybot does not read this environment variable; ignored")
		w := &r.warnings[before]
		w.Near = right
		w.Next = "set " + right + " instead, or unset " + name
		path := variablePaths[right]
		_, there := r.lookup(right)
		switch {
		case right == keyBase:
			w.shutAddress(&c.Model.env.anthropicFault)
		case there || !classOf(path).closes() || account(path):
		case right == variableBase:
			w.shutAddress(&c.Model.env.fault)
		default:
			r.close(c.ownerOf(path), at, path, before)
		}
	}
}

// account reports the path of a key that holds a token or a key of somebody: without
// it nothing can be sent anywhere.
func account(path string) bool {
	name := lastName(path)
	return strings.Contains(name, "token") || strings.HasSuffix(name, "key") || name == "headers"
}

// shutAddress switches off the models whose address a variable was meant to be.
func (w *Warning) shutAddress(fault *string) {
	w.Text, _ = ignored(*w)
	*fault = w.String()
	w.Text, w.Off = w.Text+"; models that it is for are off"+until, true
}

// meantVariable is the variable that one which is not read was most likely meant to
// be; empty for none.
func (r *reader) meantVariable(name string) string {
	var known []string
	for _, v := range variables() {
		known = append(known, v.name)
	}
	if slices.Contains(known, name) || slices.Contains(otherVariables, name) || strings.HasPrefix(name, "CLAYBOT_TEST_") ||
		ofKubernetes.MatchString(name) || r.secrets[name] || strings.Contains(r.text, name) {
		return ""
	}
	if right := aliases[name]; right != "" {
		return right
	}
	if own, ok := strings.CutPrefix(name, "CLAYBOT_"); ok && (slices.Contains(known, own) || aliases[own] != "") {
		if right := aliases[own]; right != "" {
			return right
		}
		return own
	}
	for _, k := range append(known, "CLAYBOT_CONFIG") {
		if typo(name, k) {
			return k
		}
	}
	return ""
}

// harmlessAddress reports a variable of another program that names the provider's
// own address, which claybot uses anyway.
func (r *reader) harmlessAddress(name, value string) bool {
	switch {
	case strings.HasPrefix(name, "OPENAI_"):
		return addressFault(value) == "" && ownAddress(value, ProviderOpenAI)
	case strings.HasPrefix(name, "ANTHROPIC_"):
		return addressFault(value) == "" && ownAddress(value, ProviderAnthropic)
	case strings.HasPrefix(name, "AWS_"): // other programs have them
		files, _ := r.lookup("CLAYBOT_FILES_URL")
		return files == "" && !strings.Contains(r.text, "files:")
	}
	return false
}
