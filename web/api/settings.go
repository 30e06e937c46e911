package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/web"
)

// settings serves the settings of agents and standing approvals.
type settings struct {
	settings  web.Settings
	configure *sync.Mutex // held from reading an agent's settings to writing them
}

func (s settings) operations() []operation {
	own := takes(http.StatusOK, op("changeSettings", web.Admin, "PATCH /agents/{agent}/settings", "Change settings of one agent; they apply immediately.").failing(http.StatusNotFound).
		explained("Omitted settings stay as they are. null or an empty value resets a setting to the profile's. In permissions, omitted limits stay as they are, and null removes one. If one value is invalid, nothing changes."), s.change)
	own.body = claybot.Settings{}
	config := own
	config.id, config.route = "changeConfig", "PATCH /agents/{agent}/config"
	return ofAgents.like(
		config, own,
		returns(http.StatusOK, op("getSettings", web.Read, "GET /agents/{agent}/settings", "Get the settings of an agent."), s.get),
		returns(http.StatusOK, op("listRules", web.Read, "GET /rules", "List permanent approvals by agent, oldest first.").failing().
			query(param{name: "agent", about: "Only for this agent."}), func(r *http.Request) (web.RuleList, error) {
			all, err := s.settings.ApprovedRules(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
			return web.RuleList{Rules: orEmpty(all)}, err
		}),
		does(op("removeRule", web.Admin, "DELETE /rules", "Remove a permanent approval, so that the agent asks again.").failing(http.StatusNotFound).
			query(param{name: "agent", about: "The agent of the rule."}, param{name: "rule", about: "The rule as listed."}).
			unknown(hint{"That agent has no such rule.", "GET /rules lists all rules."}), s.removeRule),
	)
}

func (s settings) get(r *http.Request) (web.SettingsView, error) {
	v, err := s.settings.Settings(r.Context(), agentOf(r))
	return web.SettingsView{Profile: v.Profile, Now: v.Now, Own: v.Own, Models: orEmpty(v.Models), Tools: orEmpty(v.Tools)}, err
}

// change replaces the given fields of the agent's settings.
func (s settings) change(r *http.Request, in map[string]json.RawMessage) (out web.SettingsView, err error) {
	if len(in) == 0 {
		return out, bad("Nothing to change: set at least one field.", "GET /agents/"+r.PathValue("agent")+"/settings lists the fields.")
	}
	for name := range in { // which JSON would take in any case
		if !slices.Contains(append(web.SettingNames(), "approvedBy", "modelChoice"), name) {
			return out, bad("There is no setting "+strconv.Quote(name)+".", "The settings are "+strings.Join(web.SettingNames(), ", ")+".")
		}
	}
	s.configure.Lock()
	defer s.configure.Unlock()
	now, err := s.settings.Settings(r.Context(), agentOf(r))
	if err != nil {
		return out, err
	}
	own := now.Own
	for name, text := range in { // one by one: null must reset fields that are not pointers
		if zero, known := zeros[name]; known && string(text) == "null" {
			text = json.RawMessage(zero)
		}
		one, _ := json.Marshal(map[string]json.RawMessage{name: text}) // was JSON
		if name == "tools" {
			own.Tools = nil // replaces the list instead of merging
		}
		if err := web.ParseJSON(one, &own, true); err != nil {
			return out, err
		}
	}
	if limits := own.Permissions; in["tools"] != nil && limits != nil && limits.Tools.Allow != nil {
		return out, bad("tools and permissions.tools.allow are the same list: set one of them.", "")
	}
	if err := s.settings.Configure(r.Context(), agentOf(r), own, web.CallerOf(r).Name); err != nil {
		return out, err
	}
	return s.get(r)
}

// zeros are the values that reset settings to the profile.
var zeros = map[string]string{"model": `""`, "prompt": `""`, "maxSteps": "0", "debounceMs": "null", "engine": `""`, "whenBusy": `""`, "processBuffer": `""`, "tools": "null", "permissions": "null"}

func (s settings) removeRule(r *http.Request) error {
	agent, rule := r.URL.Query().Get("agent"), r.URL.Query().Get("rule")
	if agent == "" || rule == "" {
		return bad("?agent= and ?rule= must name a rule.", "GET /rules lists all rules.")
	}
	return s.settings.RemoveRule(r.Context(), claybot.AgentID(agent), rule)
}
