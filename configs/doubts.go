package configs

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
)

// doubts are settings of a profile that keep agents back and were not
// understood, here or in the default profile. What is in doubt holds until it is
// set again.
type doubts struct {
	engine bool
	hosts  bool // of the explorer
}

// noHost ends a warning after which a profile reaches no host. Which ones were
// meant is not known, and the inherited ones, or that of url, may be too many.
const noHost = "no host may be reached"

// done is the profile that was read. One whose hosts are in doubt reaches none,
// not even that of its url.
func (p draft) done() Profile {
	if p.Care.Limits.Off() != "" {
		p.Tools = []string{}
	}
	if p.doubts.hosts && p.Engine.Explore != nil {
		e := *p.Engine.Explore
		e.URL, e.Hosts = "", []string{}
		p.Engine.Explore = &e
	}
	return p.Profile
}

// findDoubts looks at the warnings since before for what the group n of a profile has
// in doubt. With an engine in doubt, a plan must not run as if it had no policy:
// it is shown only.
func findDoubts(r *reader, at place, n *yaml.Node, before int, p *draft) {
	engine := false
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		text, ok := ignored(*w)
		if !ok {
			continue
		}
		switch about(at, *w) {
		case "engine":
			engine = true
			w.Off = true
			if p.Engine.Plan != nil {
				p.hold()
				w.Text = text + "; " + heldEngine
			} else {
				w.shut((*engineOf)(p), at.path+".engine", text)
			}
		case "plan":
			held := usingPreview
			if p.keepPlan(); isPlanKey(strings.TrimPrefix(w.Key, at.key+".")) {
				p.hold() // it was meant for any engine
				held = heldEngine
			}
			w.Text, w.Off = text+"; "+held, true
		case "hosts":
			p.doubts.hosts = true
			w.Text, w.Off = text+"; "+noHost, true
		}
	}
	if engine || has(n, "engine") {
		p.doubts.engine = engine
	}
	if p.doubts.engine && p.Engine.Plan != nil && (p.Engine.Name != claybot.EnginePlan || p.Engine.Plan.Mode != PlanPreview) {
		r.warn(at, "the engine, here or in the default profile, was not understood; %s", heldEngine)
		p.hold()
	}
}

// engineOf is a draft whose engine is not known: its agents must not run as if they
// had the usual one.
type engineOf draft

func (p *engineOf) off(path, why string) string {
	p.with(path, why)
	return "the agents of the profile are off"
}

func (*engineOf) on(string) {}

const heldEngine = "using engine: " + claybot.EnginePlan + " and mode: " + PlanPreview

// about tells which of engine, plan and hosts a warning about a key of the
// profile at p is about; empty for others. A key that is unknown is about the
// group that it should stand in, or what it resembles.
func about(p place, w Warning) string {
	key, own := strings.CutPrefix(w.Key, p.key+".")
	switch unknown := strings.HasPrefix(w.Text, unreadUnknown); {
	case !own:
		return ""
	case unknown && isPlanKey(key):
		return "plan"
	case unknown && key == "hosts":
		return "hosts"
	case unknown:
		key = strings.TrimPrefix(w.Near, p.key+".")
	}
	switch key {
	case "engine", "plan":
		return key
	case "explore":
		return "hosts"
	}
	return ""
}

// hold has the agents of a profile show what they would do.
func (p *draft) hold() {
	p.Engine.Name = claybot.EnginePlan
	p.keepPlan()
}

// keepPlan has plans shown only. What it changes is a copy, as profiles share
// the settings of the default one.
func (p *draft) keepPlan() {
	d := Plan{Approvals: 1}
	if p.Engine.Plan != nil {
		d = *p.Engine.Plan
	}
	d.Mode = PlanPreview
	p.Engine.Plan = &d
}

// has reports whether a group has a key with a value.
func has(n *yaml.Node, key string) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && !empty(n.Content[i+1]) {
			return true
		}
	}
	return false
}
