package picoclaw

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/claybot/claybot/imports"
)

func read(t *testing.T, files map[string]string) *imports.Find {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := Read(dir, imports.Env{Home: "/nowhere", Zone: "UTC", Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The configuration of each version, with the model and the Telegram token that it means.
func TestVersions(t *testing.T) {
	const token = "123456789:AAfake-token-of-nobody_0123456789"
	gpt := imports.Model{Provider: "openai", Name: "gpt-5.4", Key: imports.Secret{Text: "sk-fake"}}
	for name, x := range map[string]struct {
		files map[string]string
		model imports.Model
	}{
		"0": {map[string]string{"config.json": `{"agents": {"defaults": {"provider": "openai", "model": "gpt-5.4"}}, "providers": {"openai": {"api_key": "sk-fake"}},
			"channels": {"telegram": {"enabled": true, "token": "` + token + `", "allow_from": [5]}}}`}, gpt},
		"1": {map[string]string{"config.json": `{"version": 1, "agents": {"defaults": {"model_name": "main"}}, "model_list": [{"model_name": "main", "model": "openai/gpt-5.4", "api_key": "sk-fake"}],
			"channels": {"telegram": {"enabled": true, "token": "` + token + `", "allow_from": "5"}}}`}, gpt},
		"2, secrets beside": {map[string]string{"config.json": `{"version": 2, "agents": {"defaults": {"model_name": "main"}}, "model_list": [{"model_name": "main", "model": "openai/gpt-5.4", "api_keys": ["[NOT_HERE]"]}],
			"channels": {"telegram": {"enabled": true, "allow_from": ["telegram:5"]}}}`, ".security.yml": "model_list: {main: {api_keys: [sk-fake]}}\nchannels: {telegram: {token: '" + token + "'}}\n"}, gpt},
		"3, files": {map[string]string{"config.json": `{"version": 3, "agents": {"defaults": {"model_name": "main"}}, "model_list": [{"model_name": "main", "provider": "openai", "model": "gpt-5.4", "api_keys": ["file://key.txt"]}],
			"channel_list": {"mine": {"enabled": true, "type": "telegram", "allow_from": ["5|ann"], "settings": {"token": "` + token + `"}}}}`, "key.txt": "sk-fake\n"}, gpt},
	} {
		f := read(t, x.files)
		if f.Model == nil || *f.Model != x.model {
			t.Errorf("%s: model %+v, left %v", name, f.Model, f.Left)
		}
		if len(f.Accounts) != 1 || f.Accounts[0].Secrets[0] != (imports.Setting{Key: "telegram.token", Secret: imports.Secret{Text: token}}) {
			t.Errorf("%s: accounts %+v, left %v", name, f.Accounts, f.Left)
		}
		if !slices.Equal(f.Allow, []string{"telegram:5"}) || !f.Listed {
			t.Errorf("%s: allow %v, listed %v", name, f.Allow, f.Listed)
		}
	}
}

// A bot that answers everyone there is one of pairing here.
func TestEveryone(t *testing.T) {
	for _, list := range []string{`[]`, `["*"]`, `["5", "*"]`} {
		f := read(t, map[string]string{"config.json": `{"version": 3, "channel_list": {"telegram": {"enabled": true, "allow_from": ` + list + `, "settings": {"token": "123456789:AAfake-token-of-nobody_0123456789"}}}}`})
		if f.Listed || len(f.Accounts) != 1 {
			t.Errorf("%s: listed %v, accounts %v", list, f.Listed, f.Accounts)
		}
	}
}

// A key that leads out of the directory, and one that is encrypted, are named without it.
func TestKeys(t *testing.T) {
	for key, want := range map[string]string{
		"file://../../etc/hostname": "its file cannot be read: it cannot be read: path escapes from parent",
		"enc://AAAA":                "it is encrypted; store it with claybot config set",
		"[NOT_HERE]":                "no key for openai was found; set it up with: claybot setup model",
	} {
		f := read(t, map[string]string{"config.json": `{"version": 3, "agents": {"defaults": {"model_name": "openai/gpt-5.4"}}, "model_list": [{"model_name": "openai/gpt-5.4", "model": "openai/gpt-5.4", "api_keys": ["` + key + `"]}]}`})
		if i := slices.IndexFunc(f.Left, func(l imports.Left) bool { return l.What == "model openai/gpt-5.4" }); i < 0 || f.Left[i].Why != want {
			t.Errorf("%s: %v, want %q", key, f.Left, want)
		}
	}
}
