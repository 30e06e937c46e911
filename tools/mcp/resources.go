package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot"
)

// A Library has what a caller may read beside the answers of agents. Errors are words for
// the caller.
type Library interface {
	// Runs lists runs, the newest first, after the page that had before as next.
	Runs(ctx context.Context, before string) (all []RunInfo, next string, err error)
	// Notes lists the notes of a scope without their texts: agent/<id>, owner/<owner> or global.
	Notes(ctx context.Context, scope string) ([]Note, error)
	Note(ctx context.Context, scope, path string) (Note, error)
	// Skills lists the skills that agents may use.
	Skills(ctx context.Context) ([]Skill, error)
}

// A Note is a note of agents.
type Note struct {
	Path, Title, Text string
	Tainted           bool // a run that had read untrusted content wrote it
}

// A Skill is a skill of agents.
type Skill struct{ Name, Description string }

const (
	scheme   = "claybot"
	pageSize = 100
	markdown = "text/markdown"
	jsonMIME = "application/json"
)

// The kinds of resources, in the order of their list.
const (
	ofAgents = "agents"
	ofNotes  = "notes"
	ofRuns   = "runs"
)

// offer adds the resources and prompts of a library to a server. Their lists are made
// anew for each request, and may be long.
func (d desk) offer(s *sdk.Server) {
	for _, t := range []sdk.ResourceTemplate{
		{Name: "agent", URITemplate: scheme + "://agents/{agent}", MIMEType: jsonMIME, Description: "An agent, its newest texts and the addresses of its notes."},
		{Name: "run", URITemplate: scheme + "://runs/{run}", MIMEType: jsonMIME, Description: "The state of a run, and its answer when it has one."},
		{Name: "note", URITemplate: scheme + "://notes/{scope}/{+path}", MIMEType: markdown, Description: "A note. The scope is global, agent%2F and the id of an agent, or owner%2F and a person."},
	} {
		s.AddResourceTemplate(&t, d.read)
	}
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			switch p := r.GetParams().(type) {
			case *sdk.ListResourcesParams:
				return d.resources(ctx, p)
			case *sdk.ListPromptsParams:
				return d.prompts(ctx)
			case *sdk.GetPromptParams:
				return d.prompt(ctx, p)
			}
			return next(ctx, method, r)
		}
	})
}

// resources returns one page of the list. A cursor is a kind and a place in its list.
func (d desk) resources(ctx context.Context, p *sdk.ListResourcesParams) (*sdk.ListResourcesResult, error) {
	cursor := ""
	if p != nil {
		cursor = p.Cursor
	}
	if cursor == "" {
		cursor = ofAgents + "."
	}
	kind, after, _ := strings.Cut(cursor, ".")
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, Cacheable: uncached}
	var next string
	var err error
	switch kind {
	case ofAgents:
		if out.Resources, next, err = d.agentPage(ctx, after); err == nil && next == "" {
			out.NextCursor = ofNotes + "."
		}
	case ofNotes:
		if out.Resources, next, err = d.notePage(ctx, after); err == nil && next == "" {
			out.NextCursor = ofRuns + "."
		}
	case ofRuns:
		out.Resources, next, err = d.runPage(ctx, after)
	default:
		err = errCursor
	}
	if next != "" {
		out.NextCursor = kind + "." + next
	}
	return out, err
}

// uncached says that an answer holds for this moment and this caller alone.
var uncached = sdk.Cacheable{CacheScope: "private"}

var errCursor = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not of this list"}

func (d desk) agentPage(ctx context.Context, after string) ([]*sdk.Resource, string, error) {
	all, err := d.agents.List(ctx)
	if err != nil {
		return nil, "", err
	}
	return paged(all, after, func(a AgentInfo) *sdk.Resource {
		return &sdk.Resource{URI: uri(ofAgents, string(a.ID)), Name: string(a.ID), Title: plain(a.Name, 200), Description: "An agent, " + a.Type + ".", MIMEType: jsonMIME}
	})
}

func (d desk) notePage(ctx context.Context, after string) ([]*sdk.Resource, string, error) {
	all, err := d.library.Notes(ctx, "global")
	if err != nil {
		return nil, "", err
	}
	return paged(all, after, func(n Note) *sdk.Resource {
		r := &sdk.Resource{URI: uri(ofNotes, "global", n.Path), Name: n.Path, Title: plain(n.Title, 200), Description: "A note that all agents read.", MIMEType: markdown}
		if n.Tainted {
			r.Title, r.Description = "", "A note that all agents read. It may be untrusted content."
		}
		return r
	})
}

func (d desk) runPage(ctx context.Context, before string) ([]*sdk.Resource, string, error) {
	all, next, err := d.library.Runs(ctx, before)
	out := make([]*sdk.Resource, len(all))
	for i, r := range all {
		out[i] = &sdk.Resource{URI: uri(ofRuns, string(r.ID)), Name: string(r.ID), Description: fmt.Sprintf("A run of agent %s, %s.", r.Agent, r.State), MIMEType: jsonMIME}
	}
	return out, next, err
}

// paged returns a page of all after the place after, which is a number.
func paged[T any](all []T, after string, row func(T) *sdk.Resource) ([]*sdk.Resource, string, error) {
	from := 0
	if after != "" {
		n, err := strconv.Atoi(after)
		if err != nil || n < 0 {
			return nil, "", errCursor
		}
		from = min(n, len(all))
	}
	to := min(from+pageSize, len(all))
	out := make([]*sdk.Resource, 0, to-from)
	for _, v := range all[from:to] {
		out = append(out, row(v))
	}
	if to == len(all) {
		return out, "", nil
	}
	return out, strconv.Itoa(to), nil
}

// uri is the URI of a resource. Slashes of the last part stay.
func uri(kind string, parts ...string) string {
	for i, p := range parts {
		if parts[i] = url.PathEscape(p); kind == ofNotes && i == 1 {
			parts[i] = strings.ReplaceAll(parts[i], "%2F", "/")
		}
	}
	return scheme + "://" + kind + "/" + strings.Join(parts, "/")
}

// read returns what stands at a URI. What does not exist and what the URI cannot name are the same.
func (d desk) read(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	missing := sdk.ResourceNotFoundError(r.Params.URI)
	u, err := url.Parse(r.Params.URI)
	if err != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, missing
	}
	first, path, more := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	id, err1 := url.PathUnescape(first)
	path, err2 := url.PathUnescape(path)
	if errors.Join(err1, err2) != nil || id == "" || more != (u.Host == ofNotes) {
		return nil, missing
	}
	content := &sdk.ResourceContents{URI: r.Params.URI, MIMEType: jsonMIME}
	var v any
	switch u.Host {
	case ofAgents:
		v, err = d.agent(ctx, claybot.AgentID(id))
	case ofRuns:
		v, err = d.agents.Run(ctx, claybot.RunID(id))
	case ofNotes:
		var n Note
		n, err = d.library.Note(ctx, id, path)
		content.MIMEType, content.Text = markdown, n.Text
		if n.Tainted {
			content.Meta = sdk.Meta{"claybot/tainted": true}
		}
	default:
		err = missing
	}
	if err != nil {
		d.log.Debug("resource of MCP not read", "err", err)
		return nil, missing
	}
	if u.Host != ofNotes {
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return nil, err
		}
		content.Text = string(b)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{content}, Cacheable: uncached}, nil
}

// An agentView is what the resource of an agent shows.
type agentView struct {
	AgentInfo
	Texts []Said   `json:"texts"`
	Notes []string `json:"notes"` // their URIs
}

func (d desk) agent(ctx context.Context, id claybot.AgentID) (agentView, error) {
	if err := id.Validate(); err != nil {
		return agentView{}, err
	}
	all, err := d.agents.List(ctx)
	if err != nil {
		return agentView{}, err
	}
	for _, a := range all {
		if a.ID != id {
			continue
		}
		out := agentView{AgentInfo: a, Texts: []Said{}, Notes: []string{}}
		said, err := d.agents.History(ctx, id, lastDefault)
		if err != nil {
			return out, err
		}
		out.Texts = append(out.Texts, said...)
		scope := "agent/" + string(id)
		notes, err := d.library.Notes(ctx, scope)
		for _, n := range notes {
			out.Notes = append(out.Notes, uri(ofNotes, scope, n.Path))
		}
		return out, err
	}
	return agentView{}, errors.New("there is no agent with that id")
}

// prompts lists the skills. A prompt has an agent use one: the skill and its tools are on
// the side of the agent.
func (d desk) prompts(ctx context.Context) (*sdk.ListPromptsResult, error) {
	all, err := d.library.Skills(ctx)
	out := &sdk.ListPromptsResult{Prompts: make([]*sdk.Prompt, 0, len(all)), Cacheable: uncached}
	for _, s := range all {
		out.Prompts = append(out.Prompts, &sdk.Prompt{
			Name: s.Name, Description: plain(s.Description, maxDescribe),
			Arguments: []*sdk.PromptArgument{{Name: "task", Description: "What the agent is to do with the skill.", Required: true}},
		})
	}
	return out, err
}

func (d desk) prompt(ctx context.Context, p *sdk.GetPromptParams) (*sdk.GetPromptResult, error) {
	all, err := d.library.Skills(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Name != p.Name {
			continue
		}
		task := strings.TrimSpace(p.Arguments["task"])
		if task == "" {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the argument task is empty"}
		}
		text := fmt.Sprintf("Call ask_agent with the text below, and tell me its answer.\n\nUse the skill %s. %s", s.Name, task)
		return &sdk.GetPromptResult{
			Description: plain(s.Description, maxDescribe),
			Messages:    []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}},
		}, nil
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no prompt %.80q", p.Name)}
}
