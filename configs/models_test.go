package configs

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
)

// reached shows how the routes of a model are reached.
func reached(m Model) string {
	var all []string
	for _, r := range m.Routes() {
		keys := ""
		for _, k := range r.Credentials() {
			keys += "+" + k.Value()
		}
		all = append(all, strings.Join([]string{r.API(), r.ID(), r.BaseURL, strings.TrimPrefix(keys, "+")}, " "))
	}
	return strings.Join(all, " | ")
}

// Each model is reached at its provider with the key of that provider, and the
// key of one never goes to the other.
func TestProviders(t *testing.T) {
	both := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "K": "k", "L": "l"}
	only := map[string]string{"ANTHROPIC_API_KEY": "a", "K": "k"}
	proxy := map[string]string{"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://h/v1", "K": "k", "L": "l"}
	for _, tt := range []struct {
		name, file string
		vars       map[string]string
		want       string
	}{
		{"nothing", "", nil, "openai gpt-5  "},
		{"OpenAI's key", "", map[string]string{"OPENAI_API_KEY": "o"}, "openai gpt-5  o"},
		{"Anthropic's key", "", only, "anthropic claude-sonnet-4-5  a"},
		{"both keys", "", both, "openai gpt-5  o"},
		{"Claude by name", "model: Claude-opus-4-5", both, "anthropic Claude-opus-4-5  a"},
		{"Claude without its key", "model: claude-opus-4-5", map[string]string{"OPENAI_API_KEY": "o"}, "anthropic claude-opus-4-5  "},
		{"Claude elsewhere", "model: {name: claude-x, base_url: http://broker/v1, key: env:K}", only, "openai claude-x http://broker/v1 k"},
		{"Claude at a broker of the environment", "model: claude-x", proxy, "openai claude-x http://h/v1 o"},
		{"Anthropic's address", "model: {name: x, base_url: https://api.anthropic.com, key: env:K}", nil, "anthropic x https://api.anthropic.com "},
		{"Anthropic's API elsewhere", "model: {name: x, provider: anthropic, base_url: http://h2, key: env:K}", proxy, "anthropic x http://h2 k"},
		{"OpenAI's API by order", "model: {name: claude-x, provider: openai}", both, "openai claude-x  o"},
		{"several keys", "model: {name: m, keys: [env:K, env:L, env:K]}", both, "openai m  k+l"},
		{"a key of the file for its own server", "model: {name: m, base_url: http://h2/v1, key: env:K}", both, "openai m http://h2/v1 k"},
		{"no key for its own server", "model: {name: m, base_url: http://h2/v1}", both, "openai m http://h2/v1 o"},
		{"a key of the file at the provider", "model: {name: m, base_url: https://eu.api.openai.com/v1, key: env:K}", both, "openai m https://eu.api.openai.com/v1 o"},
		{"a key of the file for the address of the environment", "model: {name: m, base_url: http://h2/v1, key: env:K}", proxy, "openai m http://h/v1 o"},
		{"a list over the environment", "model: {name: m, keys: [env:K, env:L]}", proxy, "openai m http://h/v1 k+l"},
		{"fallback by name", "model: {name: gpt-5, fallback: [claude-x, gpt-5-mini]}", both, "openai gpt-5  o | anthropic claude-x  a | openai gpt-5-mini  o"},
		{"one name as fallback", "model: {name: claude-x, fallback: gpt-5}", both, "anthropic claude-x  a | openai gpt-5  o"},
		{"fallback at the same broker", "model: {name: x, base_url: http://broker/v1, fallback: [claude-y, {name: z}]}", map[string]string{"K": "k"}, "openai x http://broker/v1  | openai claude-y http://broker/v1  | openai z http://broker/v1 "},
		{"fallback elsewhere", "model: {name: gpt-5, fallback: [{name: llama, base_url: http://local/v1}, {name: x, base_url: http://h, key: env:K}]}", both, "openai gpt-5  o | openai llama http://local/v1  | openai x http://h k"},
		{"fallback with another account", "model: {name: gpt-5, fallback: [{name: gpt-5, key: env:K}]}", both, "openai gpt-5  o | openai gpt-5  k"},
		{"fallback to the address of the environment", "model: {name: x, provider: anthropic, fallback: [gpt-5]}", map[string]string{"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://h/v1", "ANTHROPIC_API_KEY": "a"}, "anthropic x  a | openai gpt-5 http://h/v1 o"},
	} {
		c, _ := load(t, tt.file+"\n", tt.vars)
		if got := reached(c.Model); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if c.Model.Demo() != (tt.name == "nothing") {
			t.Errorf("%s: demo is %v", tt.name, c.Model.Demo())
		}
	}
}

// A profile with a model of another provider keeps nothing that is the first
// one's.
func TestProfilesPartFromTheirModel(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "K": "k", "H": "secret-header"}
	c, _ := load(t, `
model: {name: gpt-5, headers: {X-Key: env:H}, max_tokens: 7}
agents:
  same: {match: [telegram], model: gpt-5-mini}
  other: {match: [slack], model: claude-x}
  own: {match: [web], model: {name: claude-x, key: env:K, headers: {X-A: b}}}
`, vars)
	for name, want := range map[string]string{
		"default": "openai gpt-5  o", "same": "openai gpt-5-mini  o", "other": "anthropic claude-x  a", "own": "anthropic claude-x  k",
	} {
		if got := reached(c.Agents.Profiles[name].Model); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if n := len(c.Agents.Profiles["same"].Model.Headers); n != 1 {
		t.Errorf("same has %d headers", n)
	}
	if n := len(c.Agents.Profiles["other"].Model.Headers); n != 0 {
		t.Errorf("other has %d headers of the first provider", n)
	}
	if h := c.Agents.Profiles["own"].Model.Headers; len(h) != 1 || h["X-A"].Value() != "b" {
		t.Errorf("own has headers %v", h)
	}
	if got := c.Agents.Profiles["other"].Model.MaxTokens; got != 7 {
		t.Errorf("max_tokens %d", got)
	}
	if err := c.Override(Override{Model: "claude-y"}); err != nil {
		t.Fatal(err)
	}
	if got := reached(c.Model) + ", " + reached(c.Agents.Profiles["default"].Model) + ", " + reached(c.Agents.Profiles["same"].Model); got != "anthropic claude-y  a, anthropic claude-y  a, openai gpt-5-mini  o" {
		t.Errorf("after --model: %s", got)
	}
}

// A profile with a server of its own is reached there with its own key and headers, and
// with none of those of the common model.
func TestProfilesWithAServerOfTheirOwn(t *testing.T) {
	const headers = "headers: {X-Key: env:H}"
	for _, tt := range []struct {
		name, model, profile string
		vars                 map[string]string
		want                 string // the route and its headers
	}{
		{"another host", "{key: env:K, " + headers + "}", "{name: m, base_url: http://local/v1}", nil, "openai m http://local/v1  0"},
		{"keys", "{keys: [env:K, env:L], " + headers + "}", "{name: m, base_url: http://local/v1}", nil, "openai m http://local/v1  0"},
		{"the key of the environment", "{name: x}", "{name: m, base_url: http://local/v1}", map[string]string{"OPENAI_API_KEY": "o"}, "openai m http://local/v1  0"},
		{"another port", "{base_url: http://h:1/v1, key: env:K, " + headers + "}", "{name: m, base_url: http://h:2/v1}", nil, "openai m http://h:2/v1  0"},
		{"another scheme", "{base_url: https://h/v1, key: env:K, " + headers + "}", "{name: m, base_url: http://h/v1}", nil, "openai m http://h/v1  0"},
		{"from a server to the provider", "{base_url: http://h/v1, key: env:K, " + headers + "}", "{name: m, base_url: https://api.openai.com/v1}", nil, "openai m https://api.openai.com/v1  0"},
		{"from a server to the provider, with its key", "{base_url: http://h/v1, key: env:K}", "{name: m, base_url: https://api.openai.com/v1}", map[string]string{"OPENAI_API_KEY": "o"}, "openai m https://api.openai.com/v1 o 0"},
		{"from the address of the environment", "{name: x, " + headers + "}", "{name: m, base_url: http://local/v1}", map[string]string{"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": "http://h"}, "openai m http://local/v1  0"},
		{"Anthropic's API elsewhere", "{name: claude-x, key: env:K, " + headers + "}", "{name: claude-y, provider: anthropic, base_url: http://local}", map[string]string{"ANTHROPIC_API_KEY": "a"}, "anthropic claude-y http://local  0"},

		{"its own key and headers", "{key: env:K, " + headers + "}", "{name: m, base_url: http://local/v1, key: env:L, headers: {X-A: b, X-B: c}}", nil, "openai m http://local/v1 l 2"},
		{"the same key, said again", "{key: env:K, " + headers + "}", "{name: m, base_url: http://local/v1, key: env:K, " + headers + "}", nil, "openai m http://local/v1 k 1"},
		{"the same keys, said again", "{keys: [env:K, env:L]}", "{name: m, base_url: http://local/v1, keys: [env:K, env:L]}", nil, "openai m http://local/v1 k+l 0"},
		{"another API at the same address", "{base_url: http://h/v1, key: env:K, " + headers + "}", "{name: m, provider: anthropic, base_url: http://h/v1}", map[string]string{"ANTHROPIC_API_KEY": "a"}, "anthropic m http://h/v1  0"},
		{"the same host", "{base_url: http://h/v1, key: env:K, " + headers + "}", "{name: m, base_url: http://H:80/v2}", nil, "openai m http://H:80/v2 k 1"},
		{"the provider's own address", "{key: env:K, " + headers + "}", "{name: m, base_url: https://eu.api.openai.com/v1}", nil, "openai m https://eu.api.openai.com/v1 k 1"},
		{"another name", "{base_url: http://h/v1, key: env:K, " + headers + "}", "m", nil, "openai m http://h/v1 k 1"},
	} {
		vars := map[string]string{"K": "k", "L": "l", "H": "h"}
		maps.Copy(vars, tt.vars)
		c, warnings := load(t, "model: "+tt.model+"\nagents: {a: {match: web, model: "+tt.profile+"}}\n", vars)
		m := c.Agents.Profiles["a"].Model
		if got := fmt.Sprint(reached(m), " ", len(m.Headers)); got != tt.want || len(warnings) > 0 {
			t.Errorf("%s: got %q, want %q; %v", tt.name, got, tt.want, warnings)
		}
	}
}

func TestModelSecrets(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o", "ANTHROPIC_API_KEY": "a", "K": "k", "L": "l", "M": "m", "H": "h"}
	c, _ := load(t, "model: {name: x, keys: [env:K, env:L], headers: {X-Key: env:H}, fallback: [{name: y, key: env:M}]}\n", vars)
	got := ""
	for _, s := range c.Model.Secrets() {
		got += s.Value()
	}
	for _, want := range vars {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not among the secrets", want)
		}
	}
	if text := fmt.Sprintf("%v %+v %#v", c.Model, c.Model, c.Model.Routes()); strings.Contains(text, "\"k\"") {
		t.Errorf("a key is shown: %s", text)
	}
}

func TestModelSettings(t *testing.T) {
	c, warnings := load(t, `
model:
  name: x
  max_tokens: 500
  prices: {x: {input: 1, output: 2, cache_write: 1.25}}
  fallback:
    - {name: y, max_tokens: 9, prices: {y: {input: 3, output: 4}}, headers: {X-A: b}, system_fallback: never}
    - z
`, nil)
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	r := c.Model.Routes()
	x, y := Price{Input: 1, Output: 2, CacheWrite: 1.25}, Price{Input: 3, Output: 4}
	if len(r) != 3 || r[0].MaxTokens != 500 || r[1].MaxTokens != 9 || r[2].MaxTokens != 0 || r[0].Fallback != nil {
		t.Errorf("got %+v", r)
	}
	if !reflect.DeepEqual(r[0].Prices, map[string]Price{"x": x}) || !reflect.DeepEqual(r[1].Prices, map[string]Price{"x": x, "y": y}) || !reflect.DeepEqual(r[2].Prices, r[0].Prices) {
		t.Errorf("prices %v, %v, %v", r[0].Prices, r[1].Prices, r[2].Prices)
	}
	if r[1].SystemFallback != "never" || r[2].SystemFallback != "auto" || len(r[1].Headers) != 1 {
		t.Errorf("got %+v", r[1:])
	}
}

func TestTranscription(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o", "K": "k"}
	for file, want := range map[string]string{
		"":                                       "false   ",
		"transcription: off":                     "false   ",
		"transcription: true":                    "true   o",
		"transcription: gpt-4o-transcribe":       "true gpt-4o-transcribe  o",
		"transcription: {base_url: http://w/v1}": "true  http://w/v1 ",
		"transcription: {key: env:K}":            "true   k",
		"transcription: [a]":                     "false   ",
		"transcription: sk-not-a-model":          "false   ",
		"transcription: no":                      "false   ",
		"transcription: FALSE":                   "false   ",
		"transcription: base":                    "true base  o",
		"transcription: large-v3":                "true large-v3  o",
	} {
		c, _ := load(t, file+"\n", vars)
		tr := c.Transcription
		if got := fmt.Sprintf("%v %s %s %s", tr.Wanted(), tr.Model, tr.BaseURL, tr.Key.Value()); got != want {
			t.Errorf("%q: got %q, want %q", file, got, want)
		}
	}
}

func TestSpeech(t *testing.T) {
	vars := map[string]string{"OPENAI_API_KEY": "o", "K": "k"}
	for file, want := range map[string]string{
		"":                                       "false    ",
		"speech: off":                            "false    ",
		"speech: true":                           "true    o",
		"speech: tts-1":                          "true tts-1   o",
		"speech: {voice: onyx}":                  "true  onyx  o",
		"speech: {base_url: http://w/v1}":        "true   http://w/v1 ",
		"speech: {key: env:K, model: tts-1}":     "true tts-1   k",
		"speech: [a]":                            "false    ",
		"speech: sk-not-a-model":                 "false    ",
		"speech: {base_url: h.example.org}":      "false    o",
		"speech: {voice: ''}":                    "false    o",
		"speech: {base_url: http://w, vioce: x}": "false   http://w ",
	} {
		c, _ := load(t, file+"\n", vars)
		s := c.Speech
		if got := fmt.Sprintf("%v %s %s %s %s", s.Wanted(), s.Model, s.Voice, s.BaseURL, s.Key.Value()); got != want {
			t.Errorf("%q: got %q, want %q", file, got, want)
		}
	}
	c, _ := load(t, "agents: {default: {voice_replies: reply}, loud: {match: [telegram], voice_replies: always}, odd: {match: [slack], voice_replies: loud}}\n", nil)
	for name, want := range map[string]string{"default": "reply", "loud": "always", "odd": "reply"} {
		if got := c.Agents.Profiles[name].VoiceReplies; got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
	}
}

// Words and numbers that may mean on, off or nothing are no names of models: nothing is
// sent to a provider because of one.
func TestWordsForModels(t *testing.T) {
	for _, word := range []string{
		"yes", "Yes", "y", "n", "none", "None", "nil", "'null'", "'~'", "undefined", "disabled", "disable", "enabled", "enable", "never", "always", "''", "0", "1", "1.5", "-1", "1e3",
		"fasle", "flase", "fales", "ture", "tru", "True", "TRUE", "ON", "of", "offf", "noe", "'no way'",
	} {
		c, warnings := load(t, "transcription: "+word+"\n", map[string]string{"OPENAI_API_KEY": "o"})
		if c.Transcription.Wanted() || c.Transcription.Off() == "" || len(offWarnings(warnings)) != 1 {
			t.Errorf("transcription: %s: %v, %v", word, c.Transcription, warnings)
		}
	}
	for _, word := range []string{"off", "false", "no", "none", "disabled", "on", "0"} {
		c, warnings := load(t, "model: {name: "+word+"}\ntranscription: {model: "+word+"}\n", map[string]string{"OPENAI_API_KEY": "o"})
		if c.Model.Off() == "" || c.Transcription.Off() == "" || len(offWarnings(warnings)) != 2 {
			t.Errorf("model: {name: %s}: %v", word, warnings)
		}
	}
}

// brokenModels are mistakes in what says how models are reached.
var brokenModels = []struct{ name, file, want string }{
	{"provider", "model: {provider: openia}", `model.provider: "openia" is not one of openai, openai-responses, anthropic, gemini, mistral, deepseek, kimi, openrouter, azure, ollama, vllm, llama.cpp; the model is off until this is corrected; did you mean openai?`},
	{"provider without an address", "model: {provider: azure, name: x}", `model.provider: the provider azure needs the address of your own resource in base_url, such as https://NAME.openai.azure.com`},
	{"fallback without an address", "model: {name: y, fallback: [{provider: azure, name: x}]}", `model.fallback[0]: the provider azure needs the address of your own resource in base_url, such as https://NAME.openai.azure.com; ignored`},
	{"provider without a name", "model: {provider: ollama}", `model.name: is missing: name one of the models of ollama`},
	{"max_tokens", "model: {max_tokens: many}", `model.max_tokens: "many" is not a whole number from 0 to 1000000; the model is off until this is corrected`},
	{"too many max_tokens", "model: {max_tokens: 1000001}", `model.max_tokens: "1000001" is not a whole number from 0 to 1000000; the model is off until this is corrected`},
	{"key in the file", "model: {keys: [sk-not-a-real-key]}", `model.keys: a secret must not stand in the file`},
	{"key that is not set", "model: {keys: [env:NOT_SET]}", `model.keys: the environment variable "NOT_SET" is not set`},
	{"keys as a group", "model: {keys: {a: b}}", `model.keys: want a list, found a group of keys; the model is off until this is corrected`},
	{"cache_write", "model: {prices: {x: {cache_write: -1}}}", `model.prices.x.cache_write: "-1" is not a price`},
	{"fallback without name", "model: {fallback: [{key: env:X}]}", `model.fallback[0].key: the environment variable "X" is not set; this fallback is off until this is corrected`},
	{"fallback as a list", "model: {fallback: [[a]]}", `model.fallback[0]: want the name of a model, or a group of keys (name, provider, base_url, key, keys, headers, system_fallback, max_tokens, prices), found a list; ignored`},
	{"fallback of a fallback", "model: {fallback: [{name: a, fallback: [b]}]}", `model.fallback[0].fallback: unknown key; ignored`},
	{"demo as fallback", "model: {fallback: [demo]}", `model.fallback[0]: the demo model answers always, and says nothing; ignored`},
	{"secret as fallback", "model: {fallback: [sk-not-a-real-key]}", `model.fallback[0]: a value that looks like a secret is not the name of a model; this fallback is off until this is corrected`},
	{"many fallbacks", "model: {fallback: [a, b, c, d, e, f, g, h, i, j]}", `model.fallback[8]: only 8 models can stand here; ignored`},
	{"transcription", "transcription: {modle: x}", `transcription.modle: unknown key; no recording is transcribed until this is corrected; did you mean transcription.model?`},
	{"transcription as a list", "transcription: [a]", `transcription: want a group of keys (model, base_url, key), found a list; no recording is transcribed until this is corrected`},
}

func TestBrokenModels(t *testing.T) {
	for _, tt := range brokenModels {
		c, warnings := load(t, tt.file+"\n", nil)
		found := false
		for _, w := range warnings {
			found = found || strings.Contains(w.String(), tt.want)
			if strings.Contains(w.String(), "not-a-real") {
				t.Errorf("%s: a secret is shown: %s", tt.name, w)
			}
		}
		if !found {
			t.Errorf("%s: %v, want %s", tt.name, warnings, tt.want)
		}
		if len(c.Model.Fallback) > maxFallbacks {
			t.Errorf("%s: %d fallbacks", tt.name, len(c.Model.Fallback))
		}
	}
}
