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

// textLimit is the maximum length of a message in characters.
const textLimit = 100_000

// starter serves messages for agents.
type starter struct {
	starter  web.Starter
	agents   web.Agents
	settings web.Settings
	graphs   graphs
	files    attachments
	engine   func(claybot.Descriptor) string // of an agent that does not exist yet
	flows    flowDesk
}

func (s starter) operations() []operation {
	about := "claybot reserves the run id for the run that will process the message. If the message joins an active run, the id refers to " +
		"that run. The text is taken literally: commands such as /new have paths of their own."
	const stored = "claybot has stored the message and will process it."
	return ofAgents.like(
		takes(http.StatusAccepted, op("startRun", web.Operate, "POST /agents/runs", "Start a run.").tagged("runs").explained(about).
			query(keyHeaderParam).upTo(filesLimit), s.start).replying(stored),
		takes(http.StatusAccepted, op("postMessage", web.Operate, "POST /agents/{agent}/messages", "Message an agent.").
			explained(about+" The answer goes to the agent's destination, for example a chat.").query(keyHeaderParam).upTo(filesLimit), func(r *http.Request, in web.MessageRequest) (web.Accepted, error) {
			return s.accept(r, agentsystem.Address{Agent: agentOf(r)}, saying{text: in.Text, key: keyOf(r, in.Key), files: in.Files})
		}).replying(stored),
	)
}

func (s starter) start(r *http.Request, in web.StartRequest) (none web.Accepted, err error) {
	if name, ok := strings.CutPrefix(in.Engine, claybot.EngineFlow+":"); ok {
		return s.startFlow(r, name, in)
	}
	in.Key = keyOf(r, in.Key)
	switch {
	case in.Engine == claybot.EngineUndo:
		return none, bad("The engine undo has a path of its own.", "Undo a run with POST /agents/runs/{run}/undo.")
	case in.Engine != "" && !slices.Contains(s.graphs.engines(), in.Engine):
		return none, bad(fmt.Sprintf("No engine %.40q.", in.Engine), "Use one of: "+strings.Join(s.graphs.engines(), ", ")+".")
	case in.AgentID != "" && in.Descriptor != nil:
		return none, bad("agentId and descriptor exclude each other.", "Set one of them, or neither for a new agent.")
	}
	to := agentsystem.Address{Agent: in.AgentID}
	if in.AgentID == "" {
		d, err := whom(web.CallerOf(r), in.Descriptor, in.Key)
		if err != nil {
			return none, err
		}
		to.Descriptor = &d
	}
	if err := s.mayWork(r, to, in.Engine); err != nil {
		return none, err
	}
	return s.accept(r, to, saying{text: in.Text, key: in.Key, files: in.Files, engine: in.Engine, stateless: in.Stateless})
}

// startFlow starts a workflow as an engine that is named. It has an agent of its own.
func (s starter) startFlow(r *http.Request, name string, in web.StartRequest) (none web.Accepted, err error) {
	switch {
	case s.flows.Flows == nil:
		return none, noFlows
	case in.AgentID != "" || in.Descriptor != nil || in.Stateless || len(in.Files) > 0:
		return none, bad("A workflow has an agent of its own: agentId, descriptor, stateless and files do not go with it.", "POST /flows/{flow}/runs starts a workflow with a payload.")
	case strings.Contains(name, "@"):
		return none, bad("A run begins with the version of the workflow that is in force.", "Use flow: and its name alone.")
	}
	got, err := s.flows.begin(r, name, web.FlowStart{Text: in.Text, Key: in.Key})
	if errors.Is(err, storage.ErrNotFound) {
		return none, bad(fmt.Sprintf("No workflow %.64q.", name), "GET /flows lists all flows.")
	}
	return got, err
}

// mayWork rejects an engine that the policy of an agent does not allow: if an agent plans,
// only a caller who may change its settings may choose another engine.
func (s starter) mayWork(r *http.Request, to agentsystem.Address, engine string) error {
	if engine == "" || engine == claybot.EnginePlan || web.CallerOf(r).Scope.Allows(web.Admin) {
		return nil
	}
	own, err := s.engineOf(r.Context(), to)
	if err != nil || own != claybot.EnginePlan {
		return err
	}
	return forbidden("This agent plans before it acts, and its policy covers only plans: another engine needs the scope admin.",
		"Omit engine, or use a token with the scope admin.")
}

// engineOf returns the engine of an agent, which need not exist yet.
func (s starter) engineOf(ctx context.Context, to agentsystem.Address) (string, error) {
	id := to.Agent
	if to.Descriptor != nil {
		var err error
		id, err = s.agents.AgentOf(ctx, *to.Descriptor)
		if errors.Is(err, storage.ErrNotFound) {
			return s.engine(*to.Descriptor), nil
		}
		if err != nil {
			return "", err
		}
	}
	v, err := s.settings.Settings(ctx, id)
	return v.Now.Engine, err
}

// keyHeader is the header equivalent of the field idempotencyKey.
const keyHeader = "Idempotency-Key"

var keyHeaderParam = param{name: keyHeader, about: "The same as idempotencyKey in the body, which takes precedence.", header: true}

// keyOf returns the idempotency key of a request: from its body, or from its header, where
// libraries put keys of any form.
func keyOf(r *http.Request, field string) string {
	header := r.Header.Get(keyHeader)
	if field == "" && (len(header) > 128 || header != "" && !keyForm.MatchString(header)) {
		sum := sha256.Sum256([]byte(header))
		return hex.EncodeToString(sum[:])
	}
	return cmp.Or(field, header)
}

// A saying is a caller's message.
type saying struct {
	text    string
	key     string // from the caller
	implied string // identifies a retry without a key
	files   []web.FileGiven
	engine  string // empty: that of the profile
	// stateless: see claybot.AgentMessage.
	stateless bool
	format    *claybot.AnswerFormat
}

func (s starter) accept(r *http.Request, to agentsystem.Address, said saying) (web.Accepted, error) {
	got, err := s.post(r, to, said)
	return web.Accepted{Accepted: got, Stream: streamPath(got.Run)}, err
}

// post passes the caller's message to an agent.
func (s starter) post(r *http.Request, to agentsystem.Address, said saying) (agentsystem.Accepted, error) {
	none := agentsystem.Accepted{}
	text := strings.ReplaceAll(strings.ToValidUTF8(said.text, "\uFFFD"), "\x00", "")
	once := said.key == "" && said.implied == "" // a retry would not be recognized
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "" && len(said.files) == 0:
		return none, bad("The field text is empty.", "")
	case n > textLimit:
		return none, bad(fmt.Sprintf("The field text has %d characters; the limit is %d.", n, textLimit), "Send several messages.")
	case once:
		said.key = rand.Text()
	case said.key == "":
		said.key = said.implied
	case len(said.key) > 128 || !keyForm.MatchString(said.key):
		return none, bad("The idempotency key must be 1 to 128 letters, digits and . _ : -", "")
	}
	caller := web.CallerOf(r)
	m := claybot.AgentMessage{
		ID:   messageOf(caller.Name, said.key),
		Type: claybot.MessageUser, Text: text, FirstHand: true, At: claybot.Now(), Engine: said.engine, Stateless: said.stateless, Format: said.format, Request: web.RequestID(r.Context()),
		From:    claybot.Sender{UserID: caller.Name, Name: caller.Name},
		Tainted: len(said.files) > 0, // file contents are untrusted
	}
	var err error
	if m.Files, err = named(said.files); err != nil {
		return none, err
	}
	if !once { // a retry stores nothing: neither its files nor an agent
		if got, known, err := s.starter.Known(r.Context(), to, m); known || err != nil {
			return got, err
		}
	}
	if m.Files, err = s.files.keep(r.Context(), to, said.files); err != nil {
		return none, err
	}
	return s.starter.StartRun(r.Context(), to, m)
}

// whom returns the descriptor that a caller addresses. Without a target it is a new agent,
// the same for every retry with the same key.
func whom(caller web.Caller, t *web.Target, key string) (claybot.Descriptor, error) {
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
		return d, bad("Only descriptors of type user accept messages.", "Name other agents by agentId; GET /agents lists all agents.")
	case !plain(d.Connector) || !plain(d.ChannelID) || !plain(d.UserID):
		return d, bad("connector, channelId and userId must be 1 to 200 characters without control characters.", "")
	case !own && !caller.Scope.Allows(web.Admin):
		return d, forbidden("Posting on behalf of another user needs the scope admin.", "Omit connector and userId, or use a token with the scope admin.")
	}
	return d, nil
}

// plain reports whether s may be a part of a descriptor.
func plain(s string) bool {
	control := func(c rune) bool { return c < ' ' || c == 0x7f || c == utf8.RuneError }
	return s != "" && len(s) <= 200 && !strings.ContainsFunc(s, control)
}

func streamPath(id claybot.RunID) string { return "/agents/runs/" + string(id) + "/stream" }
