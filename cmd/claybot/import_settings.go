package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/imports"
	"github.com/claybot/claybot/llm"
)

// A part is settings that are imported together, or not at all.
type part struct {
	name, shown string // for the report
	keys        []string
	values      []func(keep keeping) (string, error) // what each key gets
}

// A keeping stores a secret, and returns the reference to it.
type keeping func(key string, s imports.Secret) (string, error)

// add adds a key with a value as the file has it.
func (p *part) add(key, value string) {
	p.keys = append(p.keys, key)
	p.values = append(p.values, func(keeping) (string, error) { return value, nil })
}

// secret adds a key whose value is a secret.
func (p *part) secret(key string, s imports.Secret) {
	p.keys = append(p.keys, key)
	p.values = append(p.values, func(keep keeping) (string, error) { return keep(key, s) })
}

// settings imports what belongs into the configuration: all of it at once, so that a crash leaves the
// file as it was. Where none is to be imported, outcome is empty.
func (a *adoption) settings(f *configFile) (outcome string, err error) {
	var parts []part
	for _, find := range []func() []part{a.model, a.accounts, a.allowed, a.prompt, a.servers} {
		parts = append(parts, find()...)
	}
	if !a.flags.Apply || len(parts) == 0 {
		return "", a.tried(f, parts)
	}
	if err := f.lock(context.Background()); err != nil {
		return "", err
	}
	next, keys, undo, err := a.written(a.env, f, parts, f.keepSecret)
	if err != nil || len(keys) == 0 {
		undo()
		return "", err
	}
	var said strings.Builder
	quiet := *a.env
	quiet.out, quiet.err = &said, a.err
	err = f.change(&quiet, keys, next)
	if !bytes.Equal(next, f.text) { // it is not in the file
		undo()
		return "", err
	}
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "wins over the file") {
			outcome += line
		}
	}
	r, rerr := f.reread(a.env, "", nil)
	if rerr != nil {
		return outcome, rerr
	}
	text, rerr := f.outcome(r)
	return outcome + text, cmp.Or(err, rerr)
}

// done reports parts as imported.
func (a *adoption) done(parts []part) {
	for _, p := range parts {
		a.todo = append(a.todo, []string{p.name, p.shown})
	}
}

// tried reports which parts could be written. It stores nothing: secrets are variables of an environment of
// its own.
func (a *adoption) tried(f *configFile, parts []part) error {
	vars, e := make(map[string]string), *a.env
	e.lookup = func(name string) (string, bool) {
		if v, ok := vars[name]; ok {
			return v, true
		}
		return a.lookup(name)
	}
	_, _, _, err := a.written(&e, f, parts, func(_, secret string) (string, func(), error) {
		name := fmt.Sprintf("IMPORTED_%d", len(vars)+1)
		vars[name] = secret
		return "env:" + name, func() {}, nil
	})
	return err
}

// written returns the text of the file with all parts that are valid in e. undo removes the secrets that it
// stores.
func (a *adoption) written(e *env, f *configFile, parts []part, store func(key, secret string) (string, func(), error)) (next []byte, keys []string, undo func(), err error) {
	next = f.text
	var kept []func()
	undo = func() {
		for _, remove := range kept {
			remove()
		}
	}
	keep := func(key string, s imports.Secret) (string, error) {
		if s.Env != "" {
			return "env:" + s.Env, nil
		}
		secret, err := oneSecret(s.Text)
		if err != nil {
			return "", err
		}
		reference, remove, err := store(key, secret)
		if err == nil {
			kept = append(kept, remove)
		}
		return reference, err
	}
	for _, p := range parts {
		text, had := next, len(kept)
		for i, key := range p.keys {
			var value string
			if value, err = p.values[i](keep); err == nil {
				text, err = configs.Set(text, key, value)
			}
			if err != nil {
				break
			}
		}
		if err == nil {
			_, err = f.check(e, p.keys, text)
		}
		if err != nil {
			for _, remove := range kept[had:] {
				remove()
			}
			kept = kept[:had]
			a.failed = append(a.failed, []string{p.name, strings.TrimPrefix(err.Error(), "nothing was changed: ")})
			continue
		}
		next, keys = text, append(keys, p.keys...)
		a.done([]part{p})
	}
	return next, keys, undo, nil
}

// setBy returns where a key, or one below it, is set; empty for none. A key of a provider in the
// environment sets no model.
func (a *adoption) setBy(keys ...string) string {
	for _, key := range keys {
		for _, v := range a.config.Value(key) {
			if v.Origin != configs.OriginDefault && v.Origin != "OPENAI_API_KEY" && v.Origin != "ANTHROPIC_API_KEY" {
				return v.Origin
			}
		}
	}
	return ""
}

// stay reports something that claybot has already: the same, or something else.
func (a *adoption) stay(name, origin string, same bool) {
	if same {
		a.there = append(a.there, []string{name, origin})
		return
	}
	a.kept = append(a.kept, []string{name, "it is set at " + origin})
}

// value is a secret itself.
func (a *adoption) value(s imports.Secret) string {
	if s.Env == "" {
		return s.Text
	}
	v, _ := a.lookup(s.Env)
	return v
}

// source says where a secret will be.
func source(s imports.Secret) string {
	switch {
	case s.Env != "":
		return "key env:" + s.Env
	case s.Text != "":
		return "key in a file that only you can read"
	}
	return "no key"
}

// model imports the model with its address, key and fallbacks: a key goes to no other server.
func (a *adoption) model() []part {
	m := a.Model
	if m == nil {
		return nil
	}
	if at := a.setBy("model.name", "model.provider", "model.base_url", "model.key", "model.keys", "model.headers", "model.fallback"); at != "" {
		c := a.config.Model
		a.stay("model "+m.Name, at, c.Name == m.Name && c.ProviderName() == m.Provider && c.BaseURL == m.BaseURL && c.Key.Value() == a.value(m.Key))
		return nil
	}
	if why := a.stray(*m); why != "" {
		a.Leave("model "+m.Name, why)
		return nil
	}
	p := part{name: "model " + m.Name, shown: fmt.Sprintf("%s, %s", cmp.Or(m.BaseURL, m.Provider), source(m.Key))}
	p.add("model.provider", m.Provider)
	if m.BaseURL != "" {
		p.add("model.base_url", jsonText(m.BaseURL))
	}
	p.add("model.name", configs.Quoted(m.Name))
	if m.Key.Given() {
		p.secret("model.key", m.Key)
	}
	fallback := slices.DeleteFunc(slices.Clone(a.Fallback), func(x imports.Model) bool {
		why := a.stray(x)
		if why != "" {
			a.Leave("fallback model "+x.Name, why)
		}
		return why != ""
	})
	if len(fallback) > 0 {
		p.fallback(*m, fallback)
	}
	return []part{p}
}

// stray returns why a model without a key is not imported: claybot would send a key of the environment to its
// server.
func (a *adoption) stray(m imports.Model) string {
	preset, _ := llm.PresetNamed(m.Provider)
	name := preset.Key
	if v, _ := a.lookup(name); v == "" || m.Key.Given() || m.BaseURL == "" {
		return ""
	}
	return name + " is set here, and claybot would send that key to " + hostOf(configs.Model{BaseURL: m.BaseURL}) + "; set the model up with: claybot setup model"
}

// fallback adds the models that are asked after another one.
func (p *part) fallback(after imports.Model, all []imports.Model) {
	p.keys = append(p.keys, "model.fallback")
	p.values = append(p.values, func(keep keeping) (string, error) {
		entries := make([]map[string]any, len(all))
		for i, m := range all {
			entries[i] = map[string]any{"name": m.Name}
			if m.Provider == after.Provider && m.BaseURL == after.BaseURL && m.Key == after.Key {
				continue
			}
			entries[i]["provider"] = m.Provider
			if m.BaseURL != "" {
				entries[i]["base_url"] = m.BaseURL
			}
			if m.Key.Given() {
				ref, err := keep(fmt.Sprintf("model.fallback.%d.key", i+1), m.Key)
				if err != nil {
					return "", err
				}
				entries[i]["key"] = ref
			}
		}
		return jsonText(entries), nil
	})
	for _, m := range all {
		p.shown += fmt.Sprintf("; then %s (%s)", m.Name, cmp.Or(m.BaseURL, m.Provider))
	}
}

// jsonText is a value on one line, which is YAML as well.
func jsonText(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // texts, lists and maps of them always encode
	return strings.TrimSpace(b.String())
}

// accounts imports the bots.
func (a *adoption) accounts() (parts []part) {
	now := compared(a.config)
	for _, x := range a.Accounts {
		p := part{name: x.Connector}
		var keys, places []string
		same := true
		for _, s := range x.Secrets {
			keys = append(keys, s.Key)
			same = same && now[s.Key] == a.value(s.Secret)
			p.secret(s.Key, s.Secret)
			places = append(places, strings.Replace(source(s.Secret), "key", "token", 1))
		}
		if at := a.setBy(keys...); at != "" {
			a.stay(x.Connector, at, same)
			a.closed[x.Connector] = !same
			continue
		}
		p.shown = strings.Join(slices.Compact(places), ", ")
		parts = append(parts, p)
	}
	return parts
}

// allowed imports who may write, to bots that are imported: in other workspaces ids mean others.
func (a *adoption) allowed() (parts []part) {
	var list, fresh []string
	for _, x := range a.config.Access.Allow {
		list = append(list, x.Connector+":"+x.Subject)
	}
	for _, id := range a.Allow {
		connector, _, _ := strings.Cut(id, ":")
		switch at := a.setBy("access.allow"); {
		case slices.Contains(list, id):
			a.there = append(a.there, []string{"access for " + id, cmp.Or(at, "access.allow")})
		case a.closed[connector]:
			a.kept = append(a.kept, []string{"access for " + id, "claybot has another bot there; allow them with: claybot pair allow " + id})
		case at == "CLAYBOT_ALLOW":
			a.stay("access for "+id, at, false)
		default:
			fresh = append(fresh, id)
		}
	}
	if len(fresh) > 0 {
		p := part{name: "access for", shown: strings.Join(fresh, ", ")}
		p.add("access.allow", jsonText(slices.Concat(list, fresh)))
		parts = append(parts, p)
	}
	others := a.setBy("connectors") != ""
	for key, value := range compared(a.config) {
		connector, _, _ := strings.Cut(key, ".")
		others = others || connector != "model" && value != "" && !slices.ContainsFunc(a.Accounts, func(x imports.Account) bool { return x.Connector == connector })
	}
	if !a.Listed || others {
		return parts
	}
	if at := a.setBy("access.mode"); at != "" {
		a.stay("access mode allowlist", at, a.config.Access.Mode == configs.AccessAllowlist)
		return parts
	}
	p := part{name: "access mode", shown: "allowlist: only those listed, as there"}
	p.add("access.mode", configs.AccessAllowlist)
	return append(parts, p)
}

// prompt imports the texts of the agent.
func (a *adoption) prompt() []part {
	const key = "agents.default.prompt"
	if a.Prompt == "" {
		return nil
	}
	name := "prompt of " + strings.Join(a.PromptOf, ", ")
	if at := a.setBy(key); at != "" {
		a.stay(name, at, a.config.Agents.Profiles[configs.DefaultProfile].Prompt == a.Prompt)
		return nil
	}
	p := part{name: name, shown: fmt.Sprintf("%d bytes; read it, it may name files and tools of %s", len(a.Prompt), a.Program)}
	p.add(key, jsonText(a.Prompt))
	return []part{p}
}

// servers imports MCP servers. Their tools are off until an operator accepts them.
func (a *adoption) servers() (parts []part) {
	for _, s := range a.Servers {
		key, name := "mcp."+s.Name, "MCP server "+s.Name
		if at := a.setBy(key); at != "" {
			same := slices.ContainsFunc(a.config.Tools.MCP, func(x configs.MCPServer) bool {
				return x.Name == s.Name && slices.Equal(x.Process.Command, s.Command) && x.Remote.URL == s.URL
			})
			a.stay(name, at, same)
			continue
		}
		p := part{name: name, shown: "in a container of its own: " + strings.Join(s.Command, " "), keys: []string{key}}
		if u, err := url.Parse(s.URL); err == nil && s.URL != "" { // its path may hold a secret
			p.shown = u.Scheme + "://" + u.Host
		}
		p.values = append(p.values, func(keep keeping) (string, error) {
			all, secrets, group := map[string]any{}, map[string]string{}, "secrets"
			if s.URL != "" {
				all["url"], group = s.URL, "headers"
			} else {
				all["command"] = s.Command
			}
			if s.Dir != "" && s.URL == "" {
				all["dir"] = s.Dir
			}
			for _, x := range s.Secrets {
				ref, err := keep(key+"."+x.Key, x.Secret)
				if err != nil {
					return "", fmt.Errorf("%s: %w", x.Key, err)
				}
				secrets[x.Key] = ref
			}
			if len(secrets) > 0 {
				all[group] = secrets
			}
			return jsonText(all), nil
		})
		parts = append(parts, p)
	}
	return parts
}
