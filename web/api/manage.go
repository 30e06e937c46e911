package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot/profiles"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// shortText is how many characters of a waiting message a list shows.
const shortText = 200

// A waitingView is a message that no run has taken.
type waitingView struct {
	ID     claybot.MessageID   `json:"id"`
	Type   claybot.MessageType `json:"type"`
	Kind   claybot.SystemKind  `json:"kind,omitempty"`
	From   claybot.Sender      `json:"from,omitzero"`
	Text   string              `json:"text" doc:"Shortened."`
	At     claybot.Time        `json:"at"`
	Silent bool                `json:"silent,omitempty" doc:"It starts no run."`
}

// A workView is the unfinished run of an agent.
type workView struct {
	ID       claybot.RunID    `json:"id"`
	State    claybot.RunState `json:"state"`
	Started  claybot.Time     `json:"started"`
	Awaiting *awaitingView    `json:"awaiting,omitempty"`
}

// An inboxView is what waits for an agent and what it works on.
type inboxView struct {
	Waiting []waitingView `json:"waiting"`
	Run     *workView     `json:"run,omitempty"`
}

type (
	stopped struct {
		Stopped int `json:"stopped" doc:"How many runs were asked to end."`
	}
	resetDone struct {
		Reset claybot.AgentID `json:"reset"`
	}
	dropped struct {
		Dropped []claybot.MessageID `json:"dropped"`
	}
	ruleList struct {
		Rules []profiles.Rule `json:"rules"`
	}
	reminderList struct {
		Reminders []storage.Reminder `json:"reminders"`
	}
)

// A settingsView is how an agent is set.
type settingsView struct {
	Profile string           `json:"profile"`
	Now     claybot.Settings `json:"now" doc:"What applies."`
	Own     claybot.Settings `json:"own" doc:"What was changed for this agent alone."`
	Models  []string         `json:"models" doc:"Those it may use."`
	Tools   []string         `json:"tools" doc:"Those it may be given."`
}

func (a *api) manageOperations() []operation {
	change := operation{
		method: http.MethodPatch, tag: "agents", scope: web.Admin,
		summary: "Change settings of one agent; they apply at once.",
		about:   "What is left out stays. null, or an empty value, gives a setting back to the profile. When one value does not fit, nothing is changed.",
		body:    claybot.Settings{}, answers: []answer{{status: http.StatusOK, value: settingsView{}}},
		fails: []int{http.StatusNotFound}, missing: noAgent, serve: a.changeSettings,
	}
	config, settings := change, change
	config.id, config.path = "changeConfig", "/agents/{agent}/config"
	settings.id, settings.path = "changeSettings", "/agents/{agent}/settings"
	messages := param{name: "message", about: "The id of a message; all that wait when none is given.", many: true}
	unknown := []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable}
	agent := func(o operation) operation {
		o.tag, o.missing, o.fails = "agents", noAgent, unknown
		return o
	}
	return []operation{
		config, settings,
		agent(operation{
			id: "getSettings", method: http.MethodGet, path: "/agents/{agent}/settings", scope: web.Read,
			summary: "How an agent is set.", answers: []answer{{status: http.StatusOK, value: settingsView{}}}, serve: a.getSettings,
		}),
		agent(operation{
			id: "getInbox", method: http.MethodGet, path: "/agents/{agent}/inbox", scope: web.Read,
			summary: "What waits for an agent, and what it works on.", answers: []answer{{status: http.StatusOK, value: inboxView{}}}, serve: a.getInbox,
		}),
		agent(operation{
			id: "dropMessages", method: http.MethodDelete, path: "/agents/{agent}/inbox", scope: web.Operate,
			summary: "Take messages out of an inbox that no run has taken.", params: []param{messages},
			answers: []answer{{status: http.StatusOK, value: dropped{}}}, serve: a.dropMessages,
		}),
		{
			id: "listRules", method: http.MethodGet, path: "/rules", tag: "agents", scope: web.Read,
			summary: "What was approved for good, by agent, the oldest first.", params: []param{{name: "agent", about: "Of this agent only."}},
			answers: []answer{{status: http.StatusOK, value: ruleList{}}}, serve: a.listRules,
		},
		{
			id: "removeRule", method: http.MethodDelete, path: "/rules", tag: "agents", scope: web.Admin,
			summary: "Have an agent ask again.", params: []param{{name: "agent", about: "Whose rule it is."}, {name: "rule", about: "The rule as the list has it."}},
			answers: []answer{{status: http.StatusNoContent}}, fails: []int{http.StatusNotFound},
			missing: hint{"That agent has no such rule.", "GET /rules lists them."}, serve: a.removeRule,
		},
		agent(operation{
			id: "listReminders", method: http.MethodGet, path: "/agents/{agent}/reminders", scope: web.Read,
			summary: "What an agent will be reminded of, the next one first.", answers: []answer{{status: http.StatusOK, value: reminderList{}}}, serve: a.reminders,
		}),
		agent(operation{
			id: "stopAgent", method: http.MethodPost, path: "/agents/{agent}/stop", scope: web.Operate,
			summary: "End what an agent and those below it are doing.", answers: []answer{{status: http.StatusAccepted, value: stopped{}}}, serve: a.stopAgent,
		}),
		agent(operation{
			id: "resetAgent", method: http.MethodPost, path: "/agents/{agent}/reset", scope: web.Operate,
			summary: "Make an agent forget its conversation. Nobody is told.", answers: []answer{{status: http.StatusAccepted, value: resetDone{}}}, serve: a.resetAgent,
		}),
		agent(operation{
			id: "deleteAgent", method: http.MethodDelete, path: "/agents/{agent}", scope: web.Admin,
			summary: "Take an agent away; its files move to the quarantine.", answers: []answer{{status: http.StatusNoContent}}, serve: a.deleteAgent,
		}),
	}
}

func (a *api) getSettings(w http.ResponseWriter, r *http.Request) error {
	v, err := a.Desk.Settings(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, viewSettings(v))
}

func viewSettings(v profiles.SettingsView) settingsView {
	return settingsView{Profile: v.Profile, Now: v.Now, Own: v.Own, Models: orEmpty(v.Models), Tools: orEmpty(v.Tools)}
}

// changeSettings puts the fields that are given above those that the agent has.
func (a *api) changeSettings(w http.ResponseWriter, r *http.Request) error {
	var in map[string]json.RawMessage
	if err := readJSON(r, &in, true); err != nil {
		return err
	}
	if len(in) == 0 {
		return bad("There is nothing to change: give at least one field.", "GET /agents/"+r.PathValue("agent")+"/settings shows them.")
	}
	a.configure.Lock()
	defer a.configure.Unlock()
	now, err := a.Desk.Settings(r.Context(), agentOf(r))
	if err != nil {
		return err
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
			return err
		}
	}
	if err := a.Desk.Configure(r.Context(), agentOf(r), own); err != nil {
		return err
	}
	return a.getSettings(w, r)
}

// zeros gives settings back to the profile.
var zeros = map[string]string{"model": `""`, "prompt": `""`, "maxSteps": "0", "debounceMs": "null", "whenBusy": `""`, "processBuffer": `""`, "tools": "null"}

func (a *api) listRules(w http.ResponseWriter, r *http.Request) error {
	all, err := a.Desk.ApprovedRules(r.Context(), claybot.AgentID(r.URL.Query().Get("agent")))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, ruleList{orEmpty(all)})
}

func (a *api) removeRule(w http.ResponseWriter, r *http.Request) error {
	agent, rule := r.URL.Query().Get("agent"), r.URL.Query().Get("rule")
	if agent == "" || rule == "" {
		return bad("?agent= and ?rule= must name a rule.", "GET /rules lists them.")
	}
	if err := a.Desk.RemoveRule(r.Context(), claybot.AgentID(agent), rule); err != nil {
		return err
	}
	return noContent(w)
}

func (a *api) stopAgent(w http.ResponseWriter, r *http.Request) error {
	n, err := a.Desk.StopAgent(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, stopped{n})
}

func (a *api) resetAgent(w http.ResponseWriter, r *http.Request) error {
	if err := a.Desk.ResetAgent(r.Context(), agentOf(r)); err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, resetDone{agentOf(r)})
}

func (a *api) deleteAgent(w http.ResponseWriter, r *http.Request) error {
	if err := a.Desk.DeleteAgent(r.Context(), agentOf(r)); err != nil {
		return err
	}
	return noContent(w)
}

func (a *api) getInbox(w http.ResponseWriter, r *http.Request) error {
	v, err := a.Desk.Inbox(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	out := inboxView{Waiting: []waitingView{}}
	for _, m := range v.Waiting {
		out.Waiting = append(out.Waiting, waitingView{
			ID: m.ID, Type: m.Type, Kind: m.Kind, From: m.From, Text: shorten(typed(m), shortText), At: m.At, Silent: m.Silent,
		})
	}
	if x := v.Run; x != nil && !x.State.Ended() {
		out.Run = &workView{ID: x.ID, State: x.State, Started: x.Started, Awaiting: viewAwaiting(x.Awaiting)}
	}
	return reply(w, http.StatusOK, out)
}

// typed is the text of a message as its sender wrote it: a command has its
// slash again.
func typed(m claybot.AgentMessage) string {
	word := ""
	switch m.Type {
	case claybot.MessageReset:
		word = "/new "
	case claybot.MessageCancel:
		word = "/stop "
	case claybot.MessageCompact:
		word = "/compact "
	case claybot.MessageCommand:
		word = "/" + m.Command + " "
	}
	if text := strings.TrimSpace(word + m.Text); text != "" || len(m.Files) == 0 {
		return text
	}
	return "[" + connectors.FilesLine(m.Files) + "]"
}

// shorten cuts a text to n characters, the mark of the cut included.
func shorten(text string, n int) string {
	seen := 0
	cut := 0 // where the last character of a shortened text would begin
	for i := range text {
		if seen++; seen == n {
			cut = i
		}
		if seen > n {
			return text[:cut] + "…"
		}
	}
	return text
}

func (a *api) dropMessages(w http.ResponseWriter, r *http.Request) error {
	named := r.URL.Query()["message"]
	if slices.Contains(named, "") {
		return bad("?message= names no message.", "Leave it out to drop all that wait.")
	}
	ids := make([]claybot.MessageID, len(named))
	for i, id := range named {
		ids[i] = claybot.MessageID(id)
	}
	gone, err := a.Desk.Drop(r.Context(), agentOf(r), ids...)
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, dropped{orEmpty(gone)})
}

func (a *api) reminders(w http.ResponseWriter, r *http.Request) error {
	all, err := a.Desk.AgentReminders(r.Context(), agentOf(r))
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, reminderList{orEmpty(all)})
}
