package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// maxRaw is the longest name, in bytes, that a server may give a tool.
const maxRaw = 200

// A verdict says which tools of a list agents have.
type verdict struct {
	link   *link
	pins   map[string]string // hashes by the server's own names; new ones are added
	first  bool              // tools that were never seen need not be allowed
	accept func(raw, full, print string) bool
	raw    map[string]bool // seen in this list
	tools  []*tool
	off    []OffTool
}

func (v *verdict) refuse(t *sdk.Tool, why string) {
	v.off = append(v.off, OffTool{Tool: plain(t.Name, maxRaw), Why: why})
}

func (v *verdict) judge(t *sdk.Tool) {
	s := v.link.server
	switch {
	case t.Name == "" || len(t.Name) > maxRaw:
		v.refuse(t, fmt.Sprintf("its name does not have 1 to %d bytes", maxRaw))
		return
	case v.raw[t.Name]:
		v.refuse(t, "the server lists two tools of that name; the first one counts")
		return
	}
	v.raw[t.Name] = true
	full := FullName(s.Name, t.Name)
	params, err := schema(t.InputSchema)
	switch {
	case len(s.Allow) > 0 && !matches(s.Allow, t.Name) || matches(s.Deny, t.Name):
		v.refuse(t, "the configuration leaves it out")
		return
	case v.link.m.cfg.Reserved != nil && v.link.m.cfg.Reserved(full):
		v.refuse(t, "claybot has a tool of its own with the name "+full)
		return
	case err != nil:
		v.refuse(t, plain(err.Error(), 300))
		return
	}
	print := hashOf(t)
	if !v.pinned(t, full, print, params) {
		return
	}
	v.tools = append(v.tools, v.link.tool(t, full, print, params))
}

// pinned reports whether a tool is as it was when it was accepted: what it says of itself
// stands in prompts. A tool that was never seen waits to be allowed, except for those that
// a trusted server lists first.
func (v *verdict) pinned(t *sdk.Tool, full, print string, params json.RawMessage) bool {
	before, known := v.pins[t.Name]
	switch {
	case !known && len(v.pins) > maxPinned: // one of them is listedOnce
		v.refuse(t, fmt.Sprintf("the server has had %d tools already", maxPinned))
		return false
	case !known && v.first, before != print && v.accept != nil && v.accept(t.Name, full, print):
		v.pins[t.Name] = print
	case before != print:
		why := "its description or its arguments have changed since it was accepted"
		if !known {
			why = "it is new, and nobody has allowed it yet"
		}
		v.off = append(v.off, OffTool{
			Tool: plain(t.Name, maxRaw), Changed: true, Hash: print, Why: why,
			Now: plain(v.link.red.clean(t.Description), maxDescribe) + "\n" + plain(string(params), maxDescribe),
		})
		return false
	}
	return true
}

func hashOf(t *sdk.Tool) string {
	schema, err := json.Marshal(t.InputSchema) // members of objects are sorted
	if err != nil {
		schema = []byte(err.Error()) // what came as JSON can be written as JSON
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%d %s%s", len(t.Description), t.Description, schema) // a hash takes everything
	return hex.EncodeToString(sum.Sum(nil))
}

// maxName is the longest name of a tool, see package tools.
const maxName = 64

var oddName = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// FullName is the name by which agents have a tool of a server. Names that do
// not fit the form of names of tools are made to, and get eight letters that
// keep them apart from all others.
func FullName(server, tool string) string {
	name := server + "_" + tool
	fit := oddName.ReplaceAllString(name, "_")
	if fit == name && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return fit[:min(len(fit), maxName-9)] + "_" + hex.EncodeToString(sum[:4])
}

func matches(patterns []string, name string) bool {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x00") } // a star means slashes, too
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(flat(p), flat(name))
		return ok && err == nil || p == name
	})
}

func (l *link) tool(t *sdk.Tool, full, print string, params json.RawMessage) *tool {
	s := l.server
	about := fmt.Sprintf("From the MCP server %s, in its own words: %s", s.Name, plain(l.red.clean(t.Description), maxDescribe))
	spec := tools.Spec{
		Tool:    llm.Tool{Name: full, Description: strings.TrimSpace(about), Parameters: params},
		Effect:  s.Effects[t.Name], // Once where nothing is said
		Timeout: s.timeout(),
		Scopes:  []string{"mcp", "mcp:" + s.Name},
		Source:  "mcp:" + s.Name,
		Class:   tools.Outward,
	}
	if s.Trusted {
		spec.Listed = func(tools.Env, json.RawMessage) bool { return true }
	}
	return &tool{link: l, raw: t.Name, print: print, spec: spec}
}

// schema makes a schema of arguments fit to be used and shown: an object, of
// bounded size, that can be checked, with clean descriptions.
func schema(given any) (json.RawMessage, error) {
	raw, err := json.Marshal(given)
	if err != nil || len(raw) > maxSchema {
		return nil, fmt.Errorf("its arguments take more than %d bytes to describe", maxSchema)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var root map[string]any
	if given == nil || dec.Decode(&root) != nil || root == nil {
		return nil, errors.New("its arguments are not an object")
	}
	if root["type"] == nil {
		root["type"] = "object"
	}
	if root["type"] != "object" {
		return nil, errors.New("its arguments are not an object")
	}
	tidy(root)
	if raw, err = json.Marshal(root); err != nil {
		return nil, fmt.Errorf("its arguments cannot be read: %w", err)
	}
	if err := tools.CheckSchema(raw); err != nil {
		return nil, fmt.Errorf("its arguments cannot be checked: %w", err)
	}
	return raw, nil
}

// tidy cleans the words in a schema, and takes out patterns that are written in
// a form that cannot be checked here: the server checks them itself.
func tidy(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, m := range v {
			text, ok := m.(string)
			switch {
			case ok && slices.Contains([]string{"description", "title", "$comment"}, name):
				v[name] = plain(text, maxSchemaText)
			case ok && name == "pattern":
				if _, err := regexp.Compile(text); err != nil {
					delete(v, name)
				}
			default:
				tidy(m)
			}
		}
	case []any:
		for _, m := range v {
			tidy(m)
		}
	}
}
