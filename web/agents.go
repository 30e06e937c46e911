package web

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
)

// shortText is how many characters of a waiting message a list shows.
const shortText = 200

// An agentView is one agent in a list. State is idle, waiting, or the state of
// the unfinished run.
type agentView struct {
	ID         claybot.AgentID    `json:"id"`
	Type       claybot.AgentType  `json:"type"`
	Name       string             `json:"name,omitempty"`
	Parent     claybot.AgentID    `json:"parent,omitempty"`
	Owner      string             `json:"owner,omitempty"`
	Descriptor claybot.Descriptor `json:"descriptor"`
	CreatedAt  claybot.Time       `json:"createdAt"`
	LastUserAt claybot.Time       `json:"lastUserAt"`
	Usage      claybot.Usage      `json:"usage"`
	Waiting    int                `json:"waiting"`
	Run        claybot.RunID      `json:"run,omitempty"`
	State      string             `json:"state"`
}

// agents lists all agents, the one that was spoken to last first.
func (s *Server) agents(w http.ResponseWriter, r *http.Request) {
	all, ok := s.sortedAgents(w, r)
	if !ok {
		return
	}
	out := make([]agentView, len(all))
	for i, e := range all {
		d := e.Descriptor
		out[i] = agentView{
			ID: e.ID, Type: d.Type, Name: d.Name, Parent: d.Parent, Owner: d.OwnerID(), Descriptor: d,
			CreatedAt: e.CreatedAt, LastUserAt: e.LastUserAt, Usage: e.Usage, Waiting: e.Waiting, Run: e.Run,
		}
		state, err := s.agentState(r, e)
		if err != nil {
			s.internal(w, "read the state of "+string(e.ID), err)
			return
		}
		out[i].State = state
	}
	answer(w, http.StatusOK, map[string]any{"agents": out})
}

// agentState asks for the run of an agent only where there is one: few work at
// a time. A run that has ended meanwhile is none.
func (s *Server) agentState(r *http.Request, e storage.IndexEntry) (string, error) {
	if e.Run != "" {
		v, err := s.cfg.System.Inbox(r.Context(), e.ID)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return "", err
		}
		if v.Run != nil && !v.Run.State.Ended() {
			return string(v.Run.State), nil
		}
	}
	if e.Waiting > 0 {
		return "waiting", nil
	}
	return "idle", nil
}

func agentID(r *http.Request) claybot.AgentID { return claybot.AgentID(r.PathValue("id")) }

// stopAgent ends what an agent is doing: {"stopped": how many runs}.
func (s *Server) stopAgent(w http.ResponseWriter, r *http.Request) {
	n, err := s.cfg.System.StopAgent(r.Context(), agentID(r))
	s.managed(w, "stop agent", map[string]int{"stopped": n}, err)
}

func (s *Server) resetAgent(w http.ResponseWriter, r *http.Request) {
	s.managed(w, "reset agent", nil, s.cfg.System.ResetAgent(r.Context(), agentID(r)))
}

func (s *Server) deleteAgent(w http.ResponseWriter, r *http.Request) {
	s.managed(w, "delete agent", nil, s.cfg.System.DeleteAgent(r.Context(), agentID(r)))
}

// managed answers with v, or with nothing when it is nil, or with what went
// wrong.
func (s *Server) managed(w http.ResponseWriter, what string, v any, err error) {
	var no Refusal
	switch {
	case errors.As(err, &no):
		fail(w, http.StatusConflict, "refused", string(no))
	case errors.Is(err, storage.ErrNotFound):
		fail(w, http.StatusNotFound, "not_found", "There is no agent with that id.")
	case errors.Is(err, storage.ErrBusy):
		fail(w, http.StatusServiceUnavailable, "busy", "The agent is busy right now. Try again in a moment.")
	case errors.Is(err, storage.ErrFull):
		fail(w, http.StatusServiceUnavailable, "disk_full", "The data directory is full or read-only. Try again when there is space.")
	case err != nil:
		s.internal(w, what, err)
	case v == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusOK, v)
	}
}

// A waitingView is a message that no run has taken.
type waitingView struct {
	ID     claybot.MessageID   `json:"id"`
	Type   claybot.MessageType `json:"type"`
	Kind   claybot.SystemKind  `json:"kind,omitempty"`
	From   claybot.Sender      `json:"from,omitzero"`
	Text   string              `json:"text"` // shortened
	At     claybot.Time        `json:"at"`
	Silent bool                `json:"silent,omitempty"`
}

// A runView is the unfinished run of an agent.
type runView struct {
	ID       claybot.RunID     `json:"id"`
	State    claybot.RunState  `json:"state"`
	Started  claybot.Time      `json:"started"`
	Awaiting *claybot.Awaiting `json:"awaiting,omitempty"`
}

// inbox shows what waits for an agent and what it is working on.
func (s *Server) inbox(w http.ResponseWriter, r *http.Request) {
	v, err := s.cfg.System.Inbox(r.Context(), agentID(r))
	s.managed(w, "read inbox", viewInbox(v), err)
}

func viewInbox(v agentsystem.InboxView) any {
	out := struct {
		Waiting []waitingView `json:"waiting"`
		Run     *runView      `json:"run,omitempty"`
	}{Waiting: []waitingView{}}
	for _, m := range v.Waiting {
		out.Waiting = append(out.Waiting, waitingView{
			ID: m.ID, Type: m.Type, Kind: m.Kind, From: m.From, Text: shorten(typed(m), shortText), At: m.At, Silent: m.Silent,
		})
	}
	if x := v.Run; x != nil && !x.State.Ended() {
		out.Run = &runView{ID: x.ID, State: x.State, Started: x.Started, Awaiting: x.Awaiting}
	}
	return out
}

// typed is the text of a message as its sender wrote it: a command has its
// slash again.
func typed(m claybot.Message) string {
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
	return strings.TrimSpace(word + m.Text)
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

// drop takes messages out of an inbox: those named by ?message=, or all.
func (s *Server) drop(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name := range q {
		if name != "message" {
			fail(w, http.StatusBadRequest, "bad_request", fmt.Sprintf("There is no parameter %.40q here; name messages with ?message=.", name))
			return
		}
	}
	if slices.Contains(q["message"], "") {
		fail(w, http.StatusBadRequest, "bad_request", "?message= names no message. Leave it out to drop all that wait.")
		return
	}
	ids := make([]claybot.MessageID, len(q["message"]))
	for i, id := range q["message"] {
		ids[i] = claybot.MessageID(id)
	}
	dropped, err := s.cfg.System.Drop(r.Context(), agentID(r), ids...)
	s.managed(w, "drop messages", map[string]any{"dropped": orEmpty(dropped)}, err)
}

func (s *Server) reminders(w http.ResponseWriter, r *http.Request) {
	all, err := s.cfg.System.AgentReminders(r.Context(), agentID(r))
	s.managed(w, "list reminders", map[string]any{"reminders": orEmpty(all)}, err)
}
