package configs

import (
	"reflect"
	"testing"
)

var brokenExplore = []fault{
	{"explorer without a place", "agents:\n  work: {match: web, engine: explore}\n", []string{"2 agents.work: the engine explore reaches nothing without explore.url or explore.hosts ?"}},
	{"explore as word", "agents:\n  default:\n    explore: https://a.example.org/\n", []string{"3 agents.default.explore: want a group of keys (url, hosts, goal, max_iterations, no_progress, screens), found a single value; no host may be reached ?"}},
	{"explore url", "agents:\n  default:\n    explore: {url: \"file:///etc/passwd\"}\n", []string{"3 agents.default.explore.url: the value is not an http or https address such as https://host/path; ignored ?"}},
	{"explore url with password", "agents:\n  default:\n    explore: {url: \"https://me:canary@a.example.org/\"}\n", []string{"3 agents.default.explore.url: an address must not hold a user name or password; ignored ?"}},
	{"explore hosts", "agents:\n  default:\n    explore: {hosts: [\"https://a.example.org\", \"*\", \"a b\", ok.example.org]}\n", []string{
		`3 agents.default.explore.hosts: "https://a.example.org" is not a host such as shop.example.org, localhost:3000 or *.example.org; no host may be reached ?`,
		`3 agents.default.explore.hosts: "*" is not a host ?`, `3 agents.default.explore.hosts: "a b" is not a host ?`,
	}},
	{"iterations", "agents:\n  default:\n    explore: {max_iterations: 1001, no_progress: 0}\n", []string{
		`3 agents.default.explore.max_iterations: "1001" is not a whole number from 1 to 1000; ignored ?`,
		`3 agents.default.explore.no_progress: "0" is not a whole number from 1 to 1000; ignored ?`,
	}},
	{"screens", "agents:\n  default:\n    explore: {screens: few}\n", []string{`3 agents.default.explore.screens: "few" is not one of true, false; ignored ?`}},
	{"explore mistyped", "agents:\n  default:\n    explore: {headless: true, host: [a]}\n", []string{
		"3 agents.default.explore.headless: unknown key; no host may be reached ?", "3 agents.default.explore.host: unknown key; no host may be reached ?agents.default.explore.hosts",
	}},
	{"explorer whose hosts are in doubt", "agents:\n  work: {match: web, engine: explore, explore: {url: \"https://a.example.org\", hosts: {a: b}}}\n", []string{
		"2 agents.work.explore.hosts: want a list, found a group of keys; no host may be reached ?",
	}},
	{"hosts outside of their group", "agents:\n  default:\n    hosts: [a.example.org]\n", []string{"3 agents.default.hosts: unknown key; no host may be reached ?agents.default.explore.hosts"}},
	{"explore mistyped itself", "agents:\n  default:\n    explor: {hosts: [a.example.org]}\n", []string{"3 agents.default.explor: unknown key; no host may be reached ?agents.default.explore"}},
}

func TestExplore(t *testing.T) {
	c, warnings := load(t, `
agents:
  default:
    engine: explore
    explore: {url: "http://localhost:3000/", hosts: [LOCALHOST:3000, "*.Example.org", "[::1]:80"], goal: find it, max_iterations: 5, no_progress: 2, screens: off}
  same: {match: web}
  other: {match: slack, explore: {url: "https://a.example.org", hosts: [], screens: on}}
`, nil)
	for _, w := range warnings {
		t.Errorf("warning: %s", w)
	}
	def := Explore{"http://localhost:3000/", []string{"localhost:3000", "*.example.org", "[::1]:80"}, "find it", 5, 2, false}
	other := Explore{"https://a.example.org", []string{}, "find it", 5, 2, true}
	for name, want := range map[string]Explore{DefaultProfile: def, "same": def, "other": other} {
		if p := c.Agents.Profiles[name]; p.Engine.Name != "explore" || !reflect.DeepEqual(*p.Engine.Explore, want) {
			t.Errorf("%s: %+v, want %+v", name, *p.Engine.Explore, want)
		}
	}
	c, _ = load(t, "agents: {default: {explore: {}}}\n", nil)
	if got := *c.Agents.Profiles[DefaultProfile].Engine.Explore; !reflect.DeepEqual(got, Explore{MaxIterations: 60, NoProgress: 8, Screens: true}) {
		t.Errorf("by default: %+v", got)
	}
}

// A fault in the hosts leaves none: neither those of the default profile nor
// that of the url.
func TestHostsInDoubt(t *testing.T) {
	const inherited = "agents:\n  default: {explore: {url: \"https://a.example.org\", hosts: [a.example.org, \"*.b.example.org\"]}}\n  work:\n    match: web\n"
	for _, work := range []string{
		"explore: {hosts: [shop.example.org, \"a b\"]}",
		"explore: {hosts: [\"https://shop.example.org\"]}",
		"explore: {hosts: [[shop.example.org]]}",
		"explore: {hosts: {shop.example.org: true}}",
		"explore: {hosts: \"\"}",
		"explore: {host: [shop.example.org]}",
		"explore: {Hosts: [shop.example.org], goal: x}",
		"explore: {url: \"https://shop.example.org\", host: shop.example.org}",
		"explore: {hosts: [shop.example.org], hosts: [\"*.example.org\"]}",
		"explore: [shop.example.org]",
		"explor: {hosts: [shop.example.org]}",
		"approve: &a [shop]\n    explore: {hosts: *a}",
		"approve: &a {hosts: [shop]}\n    explore: *a",
	} {
		c, warnings := load(t, inherited+"    "+work+"\n", nil)
		if got := c.Agents.Profiles["work"].Engine.Explore; got == nil || len(got.Hosts) > 0 || got.URL != "" || len(warnings) == 0 {
			t.Errorf("%s: %+v, %v", work, got, warnings)
		}
		if got := c.Agents.Profiles[DefaultProfile].Engine.Explore; len(got.Hosts) != 2 || got.URL == "" {
			t.Errorf("%s changes the default profile: %+v", work, got)
		}
	}
	// It holds for the profiles that begin with such a one, until they name hosts.
	c, _ := load(t, `
agents:
  default: {explore: {url: "https://a.example.org", hosts: ["a b"], goal: find it}}
  same: {match: web}
  other: {match: slack, explore: {url: "https://c.example.org"}}
  own: {match: telegram, explore: {hosts: [c.example.org]}}
  any: {match: terminal, explore: {hosts: []}}
`, nil)
	for name, want := range map[string]Explore{
		DefaultProfile: {"", []string{}, "find it", 60, 8, true}, "same": {"", []string{}, "find it", 60, 8, true}, "other": {"", []string{}, "find it", 60, 8, true},
		"own": {"https://a.example.org", []string{"c.example.org"}, "find it", 60, 8, true}, "any": {"https://a.example.org", []string{}, "find it", 60, 8, true},
	} {
		if got := *c.Agents.Profiles[name].Engine.Explore; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
