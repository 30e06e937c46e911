package configs

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
)

// aliases are names of variables that people expect, from other programs or by
// guessing, with the name that claybot reads.
var aliases = map[string]string{
	"TELEGRAM_TOKEN": "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_TOKEN": "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_KEY": "TELEGRAM_BOT_TOKEN",
	"TELEGRAM_BOT_KEY": "TELEGRAM_BOT_TOKEN", "TG_BOT_TOKEN": "TELEGRAM_BOT_TOKEN", "TG_TOKEN": "TELEGRAM_BOT_TOKEN",
	"TELEGRAM_BASE_URL": "TELEGRAM_API_URL", "TELEGRAM_URL": "TELEGRAM_API_URL",
	"SLACK_TOKEN": "SLACK_BOT_TOKEN", "SLACK_API_TOKEN": "SLACK_BOT_TOKEN", "SLACK_OAUTH_TOKEN": "SLACK_BOT_TOKEN",
	"SLACK_APP_LEVEL_TOKEN": "SLACK_APP_TOKEN", "SLACK_SOCKET_TOKEN": "SLACK_APP_TOKEN", "SLACK_BASE_URL": "SLACK_API_URL",
	"DISCORD_TOKEN": "DISCORD_BOT_TOKEN", "DISCORD_API_TOKEN": "DISCORD_BOT_TOKEN", "DISCORD_API_KEY": "DISCORD_BOT_TOKEN", "DISCORD_BASE_URL": "DISCORD_API_URL",
	"OPENAI_KEY": "OPENAI_API_KEY", "OPENAI_TOKEN": "OPENAI_API_KEY", "OPENAI_API_TOKEN": "OPENAI_API_KEY",
	"OPENAI_API_BASE": "OPENAI_BASE_URL", "OPENAI_BASE": "OPENAI_BASE_URL", "OPENAI_URL": "OPENAI_BASE_URL",
	"OPENAI_API_URL": "OPENAI_BASE_URL", "OPENAI_API_BASE_URL": "OPENAI_BASE_URL", "OPENAI_ENDPOINT": "OPENAI_BASE_URL", "OPENAI_HOST": "OPENAI_BASE_URL",
	"ANTHROPIC_KEY": "ANTHROPIC_API_KEY", "ANTHROPIC_TOKEN": "ANTHROPIC_API_KEY", "ANTHROPIC_API_TOKEN": "ANTHROPIC_API_KEY",
	"ANTHROPIC_AUTH_TOKEN": "ANTHROPIC_API_KEY", "CLAUDE_API_KEY": "ANTHROPIC_API_KEY", "CLAUDE_KEY": "ANTHROPIC_API_KEY",
	"ANTHROPIC_BASE_URL": keyBase, "ANTHROPIC_API_URL": keyBase, "ANTHROPIC_URL": keyBase, "ANTHROPIC_API_BASE": keyBase,
	"OPENAI_MODEL": "CLAYBOT_MODEL", "ANTHROPIC_MODEL": "CLAYBOT_MODEL", "SLACK_API_KEY": "SLACK_BOT_TOKEN",
	"CLAYBOT_BASE_URL": variableBase, "CLAYBOT_MODEL_URL": variableBase, "CLAYBOT_MODEL_BASE_URL": variableBase, "CLAYBOT_API_URL": variableBase,
	"CLAYBOT_MODEL_NAME": "CLAYBOT_MODEL", "CLAYBOT_MODEL_KEY": "OPENAI_API_KEY", "CLAYBOT_API_KEY": "OPENAI_API_KEY",
	"CLAYBOT_DATABASE_URL": "CLAYBOT_STORAGE_URL", "CLAYBOT_DATABASE": "CLAYBOT_STORAGE_URL", "CLAYBOT_DB_URL": "CLAYBOT_STORAGE_URL", "CLAYBOT_POSTGRES_URL": "CLAYBOT_STORAGE_URL",
	"CLAYBOT_DATA_PATH": "CLAYBOT_DATA_DIR", "CLAYBOT_HTTP_PORT": "CLAYBOT_HTTP_ADDR", "CLAYBOT_PORT": "CLAYBOT_HTTP_ADDR",
	"CLAYBOT_ADDR": "CLAYBOT_HTTP_ADDR", "CLAYBOT_HTTP": "CLAYBOT_HTTP_ADDR", "CLAYBOT_LISTEN": "CLAYBOT_HTTP_ADDR",
	"CLAYBOT_DATA": "CLAYBOT_DATA_DIR", "CLAYBOT_DIR": "CLAYBOT_DATA_DIR", "CLAYBOT_ALLOWED": "CLAYBOT_ALLOW", "CLAYBOT_ALLOWLIST": "CLAYBOT_ALLOW",
	"CLAYBOT_ACCESS_MODE": "CLAYBOT_ACCESS", "CLAYBOT_TLS_CERT": "CLAYBOT_HTTP_TLS_CERT", "CLAYBOT_TLS_KEY": "CLAYBOT_HTTP_TLS_KEY",
}

// keyBase says where the address of Anthropic's API is set: no variable does.
const keyBase = "model.base_url" + inFile

// otherVariables are what claybot reads, or sets for its own processes, beside the
// variables of settings.
var otherVariables = []string{"CLAYBOT_CONFIG", "CLAYBOT_TASK", "CLAYBOT_EXEC", "CLAYBOT_WRITE_DOCS", "CLAYBOT_HOST", "CLAYBOT_COMMAND"}

// mistaken warns of the variables of the environment that claybot does not read and
// whose names are close to one that it reads, and of all others that begin with
// CLAYBOT_. One that may say where something goes, or who may write, switches that
// off, unless the right one is set as well. One of another program switches off only
// what nothing else configures. No value is shown.
func (r *reader) mistaken(c *Config) {
	for _, name := range slices.Sorted(slices.Values(r.environ)) {
		value, set := r.lookup(name)
		if !set || r.ours(name, value) || r.harmlessAddress(name, value) {
			continue
		}
		right := meantVariable(name)
		path, there := variablePaths()[right], false
		own, mine := strings.CutPrefix(name, ownPrefix)
		switch {
		case right != "":
			_, there = r.lookup(right)
		case !mine:
			continue
		default:
			if path = meantKey(own); path != "" {
				right = path + inFile
			} else if destination.MatchString(own) {
				path = "model.base_url"
			}
		}
		at, before := place{key: name}, len(r.warnings)
		r.warnAs(CodeVariable, at, "claybot does not read this environment variable; ignored")
		w := &r.warnings[before]
		w.Near, w.Next = right, "unset "+name
		if right != "" {
			w.Next = "set " + right + " instead, or " + w.Next
		}
		switch {
		case right == keyBase:
			w.shutAddress(&c.Model.env.anthropicFault)
		case there || !classOf(path).closes() || account(path) || !mine && namesNothing(name, value):
		case path == "model.base_url":
			w.shutAddress(&c.Model.env.openAIFault)
		case path == "model.name" && !mine && !c.Model.nameless(), path == "telegram.api_url" && !c.Connectors.Telegram.Wanted(), path == "slack.api_url" && !c.Connectors.Slack.Wanted(), path == "discord.api_url" && !c.Connectors.Discord.Wanted():
		default:
			r.close(c.ownerOf(path), at, path, before)
		}
	}
}

const (
	ownPrefix = "CLAYBOT_"
	inFile    = " in the configuration file"
)

// destination are names of variables that people give to an address.
var destination = lazyregexp.New(`(^|_)(BASE|API)?_?(URLS?|URI|ENDPOINT|HOST|SERVER|PROXY)$`)

// nameless reports whether a model is reached whose name nothing says. The demo model
// is not: it reaches no host.
func (m Model) nameless() bool {
	return m.Name == "" && (m.BaseURL != "" || m.env.based() || len(m.Credentials()) > 0 || m.env.openAI.Named() || m.env.anthropic.Named())
}

// account reports the path of a key that holds a token or a key of an account: without
// it nothing can be sent anywhere.
func account(path string) bool {
	name := lastName(path)
	return strings.Contains(name, "token") || strings.HasSuffix(name, "key") || name == "headers"
}

// shutAddress switches off the models whose address a variable was meant to be. Which
// ones there are is known at the end, see addressesMatter.
func (w *Warning) shutAddress(fault *string) {
	w.Text, _ = ignored(*w)
	*fault = w.String()
	w.Text, w.Off, w.fault = w.Text+"; models that it is for are off"+until, true, *fault
}

// addressesMatter takes back of warnings that models are off, where there are none.
func (r *reader) addressesMatter(c *Config) {
	shut := func(m Model, why string) bool {
		return slices.ContainsFunc(m.Routes(), func(m Model) bool { return !m.Demo() && m.why.says(why) })
	}
	for i := range r.warnings {
		w := &r.warnings[i]
		if w.fault == "" || shut(c.Model, w.fault) || c.Transcription.why.says(w.fault) || c.Speech.why.says(w.fault) {
			continue
		}
		used := false
		for _, p := range c.Agents.Profiles {
			used = used || shut(p.Model, w.fault)
		}
		if !used {
			text, _, _ := strings.Cut(w.Text, "; ")
			w.Text, w.Off = text+"; ignored, as nothing uses it", false
		}
	}
}

// ours reports a variable that claybot reads, or that others set for it.
func (r *reader) ours(name, value string) bool {
	if slices.Contains(otherVariables, name) || strings.HasPrefix(name, "CLAYBOT_TEST_") || r.referred[name] {
		return true
	}
	if ofKubernetes.MatchString(name) && (!strings.HasSuffix(name, "_PORT") || strings.Contains(value, "://")) {
		return true
	}
	_, known := variablePaths()[name]
	return known
}

// base is what names of variables have that say where the API of a provider is.
var base = lazyregexp.New(`^(OPENAI|ANTHROPIC)_(.*_)?((BASE_?)?(URLS?|URI|HOST|BASE|ENDPOINT|SERVER|DOMAIN)|BASE_?PATH)(_|$)`)

// chatBase is the same for the API of a chat platform.
var chatBase = lazyregexp.New(`^(TELEGRAM|SLACK|DISCORD)_(BOT_)?(API_)?((BASE_?)?(URLS?|URI|HOST|BASE|ENDPOINT|SERVER|DOMAIN)|BASE_?PATH)$`)

// machine are endings of names that may stand for an address, and for the name of a
// workspace or of a computer.
var machine = lazyregexp.New(`_(HOST|SERVER|DOMAIN)$`)

// namesNothing reports a variable whose value is a name, and no address of another server.
func namesNothing(name, value string) bool {
	return aliases[name] == "" && machine.MatchString(name) && (!strings.ContainsAny(value, ".:/") || strings.HasSuffix(value, ".slack.com")) && !strings.EqualFold(value, "localhost")
}

// meantVariable is the variable that one which is not read was most likely meant to
// be; empty for none.
func meantVariable(name string) string {
	if right := aliases[name]; right != "" {
		return right
	}
	known := variableNames()
	if own, ok := strings.CutPrefix(name, ownPrefix); ok && (slices.Contains(known, own) || aliases[own] != "") {
		return cmp.Or(aliases[own], own)
	}
	for _, k := range known {
		if typoVariable(name, k) {
			return k
		}
	}
	for _, k := range slices.Sorted(maps.Keys(aliases)) {
		if beginning(k) == beginning(name) && typoVariable(name, k) {
			return aliases[k]
		}
	}
	if m := base.FindStringSubmatch(name); m != nil {
		return map[string]string{"OPENAI": variableBase, "ANTHROPIC": keyBase}[m[1]]
	}
	if m := chatBase.FindStringSubmatch(name); m != nil {
		return m[1] + "_API_URL"
	}
	return ""
}

// ownBudget are names, after CLAYBOT_, that people give to what may be spent.
var ownBudget = lazyregexp.New(`^((MAX|DAILY|MONTHLY|TOTAL)_)*(USD|DOLLARS?|BUDGETS?|SPEND|SPENDING|COSTS?|QUOTA)(_(MAX|LIMIT|USD|DAILY|MONTHLY|PER_(DAY|MONTH)))*$`)

// meantKey is the key of the file that a variable CLAYBOT_own was most likely meant to
// set, where no variable sets it; empty for none.
func meantKey(own string) string {
	for _, path := range append(names(keysOf(reflect.TypeFor[Config]())), Keys()...) {
		if path == "limits" { // CLAYBOT_LIMIT may be anything, such as the memory of a container
			continue
		}
		if word := strings.ReplaceAll(path, ".", "_"); classOf(path) != 0 && !strings.Contains(path, "[]") && typo(own, word) {
			return path
		}
	}
	if ownBudget.MatchString(own) {
		return "budgets"
	}
	return ""
}

// typoVariable is typo for names of variables: what both begin with does not make
// them alike.
func typoVariable(name, k string) bool {
	if word := beginning(name); word == beginning(k) {
		return typo(name[len(word):], k[len(word):])
	}
	return typo(name, k)
}

// beginning is the first word of the name of a variable.
func beginning(name string) string {
	word, _, _ := strings.Cut(name, "_")
	return word
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
		return files == "" && !r.files
	}
	return false
}
