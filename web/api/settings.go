package api

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// settings serves how agents are set and what was approved for good.
type settings struct {
	settings  web.Settings
	configure *sync.Mutex // from reading the settings of an agent to writing them
}

func (s settings) operations() []operation {
	change := takes(http.StatusOK, operation{
		method: http.MethodPatch, scope: web.Admin, fails: []int{http.StatusNotFound},
		summary: "Change settings of one agent; they apply at once.",
		about:   "What is left out stays. null, or an empty value, gives a setting back to the profile. When one value does not fit, nothing is changed.",
	}, s.change)
	change.body = claybot.Settings{}
	config, own := change, change
	config.id, config.path = "changeConfig", "/agents/{agent}/config"
	own.id, own.path = "changeSettings", "/agents/{agent}/settings"
	return ofAgents.like(
		config, own,
		returns(http.StatusOK, operation{
			id: "getSettings", method: http.MethodGet, path: "/agents/{agent}/settings", scope: web.Read, summary: "How an agent is set.",
		}, s.get),
		returns(http.StatusOK, operation{
			id: "listRules", method: http.MethodGet, path: "/rules", scope: web.Read, fails: []int{},
			summary: "What was approved for good, by agent, the oldest first.", params: []param{{name: "agent", about: "Of this agent only."}},
		}, func(r *http.Request) (web.RuleList, error) {
			all, err := s.settings.ApprovedRules(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
			return web.RuleList{Rules: orEmpty(all)}, err
		}),
		does(operation{
			id: "removeRule", method: http.MethodDelete, path: "/rules", scope: web.Admin, fails: []int{http.StatusNotFound},
			summary: "Have an agent ask again.", params: []param{{name: "agent", about: "Whose rule it is."}, {name: "rule", about: "The rule as the list has it."}},
			missing: hint{"That agent has no such rule.", "GET /rules lists them."},
		}, s.removeRule),
	)
}

func (s settings) get(r *http.Request) (web.SettingsView, error) {
	v, err := s.settings.Settings(r.Context(), agentOf(r))
	return web.SettingsView{Profile: v.Profile, Now: v.Now, Own: v.Own, Models: orEmpty(v.Models), Tools: orEmpty(v.Tools)}, err
}

// change puts the fields that are given above those that the agent has.
func (s settings) change(r *http.Request, in map[string]json.RawMessage) (out web.SettingsView, err error) {
	if len(in) == 0 {
		return out, bad("There is nothing to change: give at least one field.", "GET /agents/"+r.PathValue("agent")+"/settings shows them.")
	}
	s.configure.Lock()
	defer s.configure.Unlock()
	now, err := s.settings.Settings(r.Context(), agentOf(r))
	if err != nil {
		return out, err
	}
	own := now.Own
	for name, text := range in { // one by one: null must reach fields that are no pointers
		if zero, known := zeros[name]; known && string(text) == "null" {
			text = json.RawMessage(zero)
		}
		one, _ := json.Marshal(map[string]json.RawMessage{name: text}) // it was JSON
		if name == "tools" {
			own.Tools = nil // a list is replaced, not written into
		}
		if err := parse(one, &own, true); err != nil {
			return out, err
		}
	}
	if err := s.settings.Configure(r.Context(), agentOf(r), own); err != nil {
		return out, err
	}
	return s.get(r)
}

// zeros gives settings back to the profile.
var zeros = map[string]string{"model": `""`, "prompt": `""`, "maxSteps": "0", "debounceMs": "null", "whenBusy": `""`, "processBuffer": `""`, "tools": "null"}

func (s settings) removeRule(r *http.Request) error {
	agent, rule := r.URL.Query().Get("agent"), r.URL.Query().Get("rule")
	if agent == "" || rule == "" {
		return bad("?agent= and ?rule= must name a rule.", "GET /rules lists them.")
	}
	return s.settings.RemoveRule(r.Context(), claybot.AgentID(agent), rule)
}
