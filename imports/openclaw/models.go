package openclaw

import (
	"cmp"
	"slices"
	"strings"

	"github.com/claybot/claybot/imports"
)

// models reads the model of the default agent and its fallbacks.
func (r *reader) models() {
	m := r.of("model")
	primary := m.Text()
	if m.Object() {
		primary = m.At("primary").Text()
	}
	if primary == "" {
		return
	}
	first, why := r.model(primary)
	if why != "" {
		r.Leave("model "+primary, why)
		return
	}
	r.Model = &first
	for _, ref := range m.At("fallbacks").Texts() {
		next, why := r.model(ref)
		if why != "" {
			r.Leave("fallback model "+ref, why)
			continue
		}
		r.Fallback = append(r.Fallback, next)
	}
}

// model returns the model of a reference, provider/name or an alias.
func (r *reader) model(ref string) (imports.Model, string) {
	known := r.config.At("agents", "defaults", "models")
	for _, full := range known.Keys() {
		if known.At(full, "alias").Text() == ref {
			ref = full
		}
	}
	provider, name, ok := strings.Cut(ref, "/")
	if !ok {
		provider, name = "anthropic", ref // as OpenClaw assumes
	}
	provider = cmp.Or(map[string]string{"gemini": "google", "z.ai": "zai", "z-ai": "zai"}[provider], provider)
	p := r.config.At("models", "providers", provider)
	key, why := r.key(provider, p)
	if why != "" {
		return imports.Model{}, why
	}
	return imports.NewModel(provider, name, p.At("api").Text(), p.At("baseUrl").Text(), key)
}

// key returns the key of a provider: of the configuration, of the logins of the agent, or of the usual
// variable; none if there is none. A variable of the environment holds a key for the provider itself: it
// goes to no other server unless the configuration names it.
func (r *reader) key(provider string, p imports.Value) (imports.Secret, string) {
	if v := p.At("apiKey"); v.There() {
		if text := v.Text(); marker.MatchString(text) {
			return r.variable(text)
		}
		return r.secret(v)
	}
	if s, why, found := r.login(provider); found {
		return s, why
	}
	name := strings.ToUpper(strings.ReplaceAll(provider, "-", "_")) + "_API_KEY"
	if _, why := r.variable(name); provider == "google" && why != "" {
		name = "GEMINI_API_KEY"
	}
	if imports.Elsewhere(provider, p.At("baseUrl").Text()) {
		return imports.Secret{Text: r.vars[name]}, ""
	}
	if s, why := r.variable(name); why == "" {
		return s, ""
	}
	return imports.Secret{}, ""
}

// login returns the key of a provider among the logins of the agent.
func (r *reader) login(provider string) (s imports.Secret, why string, found bool) {
	name := "agents/" + r.id + "/agent/auth-profiles.json"
	if !r.dir.Has(name) {
		return s, "", false
	}
	store, err := r.dir.JSON5(name)
	if err != nil {
		return s, err.Error(), true
	}
	profiles := store.At("profiles")
	if !profiles.There() {
		profiles = store
	}
	ids := slices.Concat(store.At("order", provider).Texts(), []string{provider + ":default"}, profiles.Keys())
	for _, id := range ids {
		p := profiles.At(id)
		if p.At("provider").Text() != provider {
			continue
		}
		switch p.At("type").Text() {
		case "api_key", "":
			s, why = r.secret(p.First("keyRef", "key"))
		case "token":
			s, why = r.secret(p.First("tokenRef", "token"))
		default:
			why = "OpenClaw is logged in to " + provider + " with a subscription; claybot needs an API key: claybot setup model"
		}
		if why == "" && s.Given() {
			return s, "", true
		}
		found = true
	}
	if found && why == "" {
		why = "its login has no key"
	}
	return s, why, found
}
