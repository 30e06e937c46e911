package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// textLimit is the longest message in characters.
const textLimit = 100_000

// A startRequest gives an agent something to do. Without AgentID and Descriptor
// the message is for an agent of its own.
type startRequest struct {
	AgentID    claybot.AgentID `json:"agentId,omitempty" doc:"The agent that is told. Give this or descriptor, or neither for a new agent."`
	Descriptor *target         `json:"descriptor,omitempty"`
	Text       string          `json:"text,omitempty" doc:"What it is told, at most 100,000 characters. It may be left out when there are files."`
	Key        string          `json:"idempotencyKey,omitempty" doc:"1 to 128 letters, digits and . _ : -; a repeat under the same key does nothing new and gets the same ids; another message under it is refused."`
	Files      []fileGiven     `json:"files,omitempty" doc:"At most 10."`
	Engine     string          `json:"engine,omitempty" doc:"What advances the run: react, plan, explore or another graph of GET /graphs. Without it, the engine of the agent's profile. A message that joins a run under way does not change its engine. Another one than plan needs the scope admin where that of the agent is plan."`
	Stateless  bool            `json:"stateless,omitempty" doc:"Not supported; leave out agentId and descriptor for an agent without a past."`
}

// A target names the agent of a person in a channel; it is made at its first
// message.
type target struct {
	Type      claybot.AgentType `json:"type,omitempty" doc:"Only user, the default."`
	Connector string            `json:"connector,omitempty" doc:"api, the default; another one needs the scope admin."`
	ChannelID string            `json:"channelId" doc:"The thread, of your own choice."`
	UserID    string            `json:"userId,omitempty" doc:"The name of your token, the default; another one needs the scope admin."`
}

// A messageRequest is a message for an agent that is named by the path.
type messageRequest struct {
	Text  string      `json:"text,omitempty" doc:"At most 100,000 characters."`
	Key   string      `json:"idempotencyKey,omitempty" doc:"As for POST /agents/runs."`
	Files []fileGiven `json:"files,omitempty" doc:"At most 10."`
}

// An accepted is what became of a message.
type accepted struct {
	agentsystem.Accepted
	Stream string `json:"stream" doc:"The path of the run's events."`
}

func (a *api) startOperations() []operation {
	about := "The run id is reserved: it is that of the run that takes the message. When the message joins a run that is under way, the id " +
		"means that run. The text is taken as it is: commands such as /new have paths of their own."
	return []operation{
		{
			id: "startRun", method: http.MethodPost, path: "/agents/runs", tag: "runs", scope: web.Operate,
			summary: "Give an agent something to do.", about: about, params: []param{keyHeaderParam}, body: startRequest{}, limit: filesLimit,
			answers: []answer{{status: http.StatusAccepted, value: accepted{}, about: "It is stored and will be worked on."}},
			fails:   []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable},
			missing: noAgent, serve: a.startRun,
		},
		{
			id: "postMessage", method: http.MethodPost, path: "/agents/{agent}/messages", tag: "agents", scope: web.Operate,
			summary: "Write to an agent.", about: about + " The answer goes to the place of the agent, for example a chat.", params: []param{keyHeaderParam}, body: messageRequest{}, limit: filesLimit,
			answers: []answer{{status: http.StatusAccepted, value: accepted{}, about: "It is stored and will be worked on."}},
			fails:   []int{http.StatusNotFound, http.StatusConflict, http.StatusServiceUnavailable},
			missing: noAgent, serve: a.postMessage,
		},
	}
}

func (a *api) startRun(w http.ResponseWriter, r *http.Request) error {
	var in startRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	in.Key = keyOf(r, in.Key)
	switch {
	case in.Stateless:
		return bad("stateless is not supported: an agent always has a memory.", "Leave out agentId and descriptor: the message is then for a new agent.")
	case in.Engine == claybot.EngineUndo:
		return bad("The engine undo has a path of its own.", "POST /agents/runs/{run}/undo takes back what a run did.")
	case in.Engine != "" && !slices.Contains(a.engines(), in.Engine):
		return bad(fmt.Sprintf("There is no engine %.40q.", in.Engine), "There are: "+strings.Join(a.engines(), ", ")+".")
	case in.AgentID != "" && in.Descriptor != nil:
		return bad("agentId and descriptor are both given.", "Give one of them, or none for a new agent.")
	}
	to := agentsystem.Address{Agent: in.AgentID}
	if in.AgentID == "" {
		d, err := whom(web.CallerOf(r), in.Descriptor, in.Key)
		if err != nil {
			return err
		}
		to.Descriptor = &d
	}
	if err := a.mayWork(r, to, in.Engine); err != nil {
		return err
	}
	return a.accept(w, r, to, saying{text: in.Text, key: in.Key, files: in.Files, engine: in.Engine})
}

// mayWork refuses an engine that the policy of an agent does not bind: where an
// agent plans, only who may change its settings has it work otherwise.
func (a *api) mayWork(r *http.Request, to agentsystem.Address, engine string) error {
	if engine == "" || engine == claybot.EnginePlan || web.CallerOf(r).Scope.Allows(web.Admin) {
		return nil
	}
	own, err := a.engineOf(r.Context(), to)
	if err != nil || own != claybot.EnginePlan {
		return err
	}
	return forbidden("This agent plans before it acts, and its policy binds plans alone: another engine needs the scope admin.",
		"Leave engine out, or use a token with the scope admin.")
}

// engineOf is the engine of an agent, which may not exist yet.
func (a *api) engineOf(ctx context.Context, to agentsystem.Address) (string, error) {
	id := to.Agent
	if to.Descriptor != nil {
		var err error
		id, err = a.Desk.AgentOf(ctx, *to.Descriptor)
		if errors.Is(err, storage.ErrNotFound) {
			return a.Engine(*to.Descriptor), nil
		}
		if err != nil {
			return "", err
		}
	}
	v, err := a.Desk.Settings(ctx, id)
	return v.Now.Engine, err
}

func (a *api) postMessage(w http.ResponseWriter, r *http.Request) error {
	var in messageRequest
	if err := readBody(r, &in); err != nil {
		return err
	}
	in.Key = keyOf(r, in.Key)
	return a.accept(w, r, agentsystem.Address{Agent: agentOf(r)}, saying{text: in.Text, key: in.Key, files: in.Files})
}

// keyHeader is the header that stands for the field idempotencyKey.
const keyHeader = "Idempotency-Key"

var keyHeaderParam = param{name: keyHeader, about: "The same as idempotencyKey in the body, which counts if both are given.", header: true}

// keyOf returns the idempotency key of a request: that of its body, or of its header,
// where libraries put keys of any form.
func keyOf(r *http.Request, field string) string {
	header := r.Header.Get(keyHeader)
	if field == "" && (len(header) > 128 || header != "" && !keyForm.MatchString(header)) {
		sum := sha256.Sum256([]byte(header))
		return hex.EncodeToString(sum[:])
	}
	return cmp.Or(field, header)
}

// A saying is what a caller says.
type saying struct {
	text    string
	key     string // given by the caller
	implied string // in place of key: by what a repeat is recognized
	files   []fileGiven
	engine  string // empty: that of the profile
}

func (a *api) accept(w http.ResponseWriter, r *http.Request, to agentsystem.Address, s saying) error {
	got, err := a.start(r, to, s)
	if err != nil {
		return err
	}
	return reply(w, http.StatusAccepted, accepted{got, streamPath(got.Run)})
}

// start gives what the caller says to an agent.
func (a *api) start(r *http.Request, to agentsystem.Address, s saying) (agentsystem.Accepted, error) {
	none := agentsystem.Accepted{}
	text := strings.ReplaceAll(strings.ToValidUTF8(s.text, "\uFFFD"), "\x00", "")
	once := s.key == "" && s.implied == "" // a repeat would not be recognized
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "" && len(s.files) == 0:
		return none, bad("The field text is empty.", "")
	case n > textLimit:
		return none, bad(fmt.Sprintf("The field text has %d characters; at most %d are taken.", n, textLimit), "Send it in parts.")
	case once:
		s.key = rand.Text()
	case s.key == "":
		s.key = s.implied
	case len(s.key) > 128 || !keyForm.MatchString(s.key):
		return none, bad("The idempotency key must be 1 to 128 letters, digits and . _ : -", "")
	}
	caller := web.CallerOf(r)
	m := claybot.AgentMessage{
		ID:   claybot.MessageID(claybot.ConnectorAPI + "/" + caller.Name + "/" + s.key),
		Type: claybot.MessageUser, Text: text, At: claybot.Now(), Engine: s.engine,
		From: claybot.Sender{UserID: caller.Name, Name: caller.Name},
	}
	var err error
	if m.Files, err = named(s.files); err != nil {
		return none, err
	}
	if !once { // a repeat keeps nothing: neither its files nor an agent
		if got, known, err := a.Desk.Known(r.Context(), to, m); known || err != nil {
			return got, err
		}
	}
	if m.Files, err = a.keep(r.Context(), to, s.files); err != nil {
		return none, err
	}
	return a.Desk.StartRun(r.Context(), to, m)
}

// whom is the descriptor that a caller means. Without one it is an agent of its
// own, which is the same for a repeat under the same key.
func whom(caller web.Caller, t *target, key string) (claybot.Descriptor, error) {
	if t == nil {
		channel := rand.Text()
		if key != "" {
			sum := sha256.Sum256([]byte(key))
			channel = hex.EncodeToString(sum[:12])
		}
		return claybot.User(claybot.ConnectorAPI, channel, caller.Name), nil
	}
	d := claybot.User(t.Connector, t.ChannelID, t.UserID)
	if d.Connector == "" {
		d.Connector = claybot.ConnectorAPI
	}
	if d.UserID == "" && d.Connector == claybot.ConnectorAPI {
		d.UserID = caller.Name
	}
	own := d.Connector == claybot.ConnectorAPI && d.UserID == caller.Name
	switch {
	case t.Type != "" && t.Type != claybot.AgentUser:
		return d, bad("Only a descriptor of type user can be written to.", "Name another agent by agentId; GET /agents lists them.")
	case !plain(d.Connector) || !plain(d.ChannelID) || !plain(d.UserID):
		return d, bad("connector, channelId and userId must be 1 to 200 characters without control characters.", "")
	case !own && !caller.Scope.Allows(web.Admin):
		return d, forbidden("To speak for somebody else needs the scope admin.", "Leave out connector and userId, or use a token with the scope admin.")
	}
	return d, nil
}

// plain reports whether s may be a part of a descriptor.
func plain(s string) bool {
	control := func(c rune) bool { return c < ' ' || c == 0x7f || c == utf8.RuneError }
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, control)
}

func streamPath(id claybot.RunID) string { return "/agents/runs/" + string(id) + "/stream" }
