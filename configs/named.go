package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ModelNamed returns the model that an agent asks when it has a model name of its own.
// own is the model of its profile.
//
// A name that own or one of its fallbacks has is reached as configured there. Otherwise
// a name belongs to the other profiles whose model or fallback has it. If all of them
// reach it at the server of own, it is asked for with the route of own, so that the same
// account pays; else all of them must reach it in the same way. A name that no profile
// has is asked for at the server of own, and only if it needs no other provider or key.
//
// Any other name is refused: m then reaches no host, and m.Off says why.
func (c Config) ModelNamed(own Model, name string) (m Model, refused bool) {
	if m, ok := own.named(name); ok {
		return m, false
	}
	if own.Demo() { // it has no other name, and reaches no host
		return own, false
	}
	there := own
	there.Name = name
	there.part(own)
	served := there.routedLike(own) // and, so far, by own's server alone
	var first, found Model
	var owners []string
	alike := true
	for _, profile := range slices.Sorted(maps.Keys(c.Agents.Profiles)) {
		m, ok := c.Agents.Profiles[profile].Model.named(name)
		if !ok {
			continue
		}
		served = served && m.ProviderName() == own.ProviderName() && m.server() == own.server() && m.Off() == own.Off()
		if len(owners) == 0 {
			first, found = m, m
		}
		if len(found.Fallback) == 0 {
			found = m
		}
		owners, alike = append(owners, profile), alike && m.routedLike(first)
	}
	switch {
	case served:
		return there, false
	case !alike:
		return refuse(name, fmt.Sprintf("the model %s is configured differently in the profiles %s, so claybot does not choose between them",
			quote(name), strings.Join(owners, ", "))), true
	case len(owners) > 0:
		return found, false
	default:
		return refuse(name, fmt.Sprintf("the model %s is not configured, and the agent's model %s is of another provider", quote(name), quote(own.ID()))), true
	}
}

// named returns m, or the first of its fallbacks with the name.
func (m Model) named(name string) (Model, bool) {
	if m.Demo() {
		return Model{}, false
	}
	for i, r := range m.Routes() {
		switch {
		case r.ID() != name:
		case i == 0:
			return m, true
		default:
			return r, true
		}
	}
	return Model{}, false
}

// routedLike reports whether m goes to the same server as o, with the same keys and
// headers.
func (m Model) routedLike(o Model) bool {
	same := func(a, b Secret) bool { return a.Value() == b.Value() }
	return m.ProviderName() == o.ProviderName() && m.BaseURL == o.BaseURL && m.Off() == o.Off() &&
		slices.EqualFunc(m.Credentials(), o.Credentials(), same) && maps.EqualFunc(m.Headers, o.Headers, same)
}

// refuse returns a model that reaches no host.
func refuse(name, why string) Model {
	m := Model{Name: name}
	m.off("name", why)
	return m
}
