// Package memory holds the tools by which an agent remembers beyond its
// conversation: notes in a tree of its own, in one that all agents of its person
// share, and in one for everybody.
//
// What a tainted run writes stays marked, so a run that reads it later is tainted as
// well. Memory never crosses owners.
//
// Only cmd imports it.
package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

// Limits of a tree.
const (
	MaxNote  = 256 << 10 // bytes of one note
	MaxScope = 8 << 20   // bytes of all notes of a tree
	MaxIndex = 4 << 10   // bytes of the index that stands in a prompt
	maxPath  = 500
	maxFound = 20
)

// The trees that an agent has.
const (
	scopeAgent  = "agent"
	scopeOwner  = "owner"
	scopeGlobal = "global"
)

// ListsOwner is the rule of an approval for good that an agent lists the notes of its
// person, see tools.Rule.
const ListsOwner = "memory_list(" + scopeOwner + ")"

// A Config is what Tools needs.
type Config struct {
	Notes    storage.Memories
	Versions storage.MemoryHistory
	// Global reports whether an agent may change what the agents of all people read; nil
	// for none.
	Global func(env tools.Env) bool
	// Discloses says what a call discloses that reads the notes of the owner, with toAll,
	// one that writes what the agents of all people read; nil: nothing.
	Discloses func(ctx context.Context, env tools.Env, toAll bool) *tools.Disclosure
}

// Tools are the memory tools: memory_list, memory_read, memory_search,
// memory_write, memory_append, memory_update and memory_delete.
func Tools(c Config) []tools.Tool {
	return []tools.Tool{list(c), read(c), search(c), write(c), appendTo(c), update(c), remove(c)}
}

// The codes that errors begin with.
const (
	noEntry   = "ENOENT"
	isFolder  = "EISDIR"
	notFolder = "ENOTDIR"
	invalid   = "EINVAL"
	overQuota = "EQUOTA"
)

func fail(code, format string, args ...any) error {
	return &tools.Fault{Code: code, Text: code + ": " + fmt.Sprintf(format, args...)}
}

func spec(name, description string, effect tools.Effect) tools.Spec {
	return tools.Spec{Tool: llm.Tool{Name: name, Description: description}, Effect: effect, Public: effect != tools.ReadOnly, Scopes: []string{"memory"}}
}

// shared makes a tool ask where it discloses something, by its argument scope: with
// write, what it writes, else what it reads.
func (c Config) shared(s tools.Spec, write bool) tools.Spec {
	scope := func(args json.RawMessage) string {
		var in struct{ Scope string }
		_ = json.Unmarshal(args, &in) // what does not fit is refused before
		return in.Scope
	}
	s.Subject = func(args json.RawMessage) string { return cmp.Or(scope(args), scopeAgent) }
	s.Discloses = func(ctx context.Context, env tools.Env, args json.RawMessage) *tools.Disclosure {
		in := scope(args)
		switch {
		case c.Discloses == nil || write && (c.Global == nil || !c.Global(env)): // the call fails
		case write && in == scopeGlobal:
			return c.Discloses(ctx, env, true)
		case !write && in == scopeOwner:
			return c.Discloses(ctx, env, false)
		}
		return nil
	}
	return s
}

func (c Config) scope(env tools.Env, tree string, write bool) (string, error) {
	switch tree {
	case "", scopeAgent:
		return scopeAgent + "/" + string(env.Agent.ID), nil
	case scopeOwner:
		if owner := env.Agent.Descriptor.OwnerID(); owner != "" {
			return scopeOwner + "/" + owner, nil
		}
		return "", fail(invalid, "this agent has no owner; it has only the scope agent")
	case scopeGlobal:
		if write && (c.Global == nil || !c.Global(env)) {
			return "", fail(invalid, "this agent may read the scope global and not change it")
		}
		return scopeGlobal, nil
	}
	return "", fail(invalid, "field scope: %.40q, want agent, owner or global", tree)
}

func clean(p string) (string, error) {
	p, err := cleanFolder(p)
	if err == nil && p == "" {
		err = fail(invalid, "field path: want the path of a note, such as people/birthdays.md")
	}
	return p, err
}

// cleanFolder checks the path of a folder; empty is the top.
func cleanFolder(p string) (string, error) {
	p = strings.Trim(p, "/")
	switch {
	case p == "" || p == ".":
		return "", nil
	case len(p) > maxPath:
		return "", fail(invalid, "field path: %d bytes, the limit is %d", len(p), maxPath)
	case !utf8.ValidString(p), strings.ContainsFunc(p, unicode.IsControl):
		return "", fail(invalid, "field path: %.100q has characters that cannot be", p)
	case strings.Contains(p, "$"), strings.Contains(p, `\`):
		return "", fail(invalid, `field path: %.100q must not contain $ or \`, p)
	}
	for part := range strings.SplitSeq(p, "/") {
		if part == "" || part == ".." || part == "." || strings.TrimSpace(part) != part {
			return "", fail(invalid, "field path: %.100q has an empty part, a . or a ..", p)
		}
	}
	return path.Clean(p), nil
}

// fits says why a note cannot be at a path: a folder is there, or a note where a
// folder is wanted.
func (c Config) fits(ctx context.Context, scope, p string) error {
	all, err := c.Notes.Memories(ctx, scope)
	if err != nil {
		return broken(err)
	}
	for _, m := range all {
		switch {
		case strings.HasPrefix(m.Path, p+"/"):
			return fail(isFolder, "%.200q is a folder", p)
		case strings.HasPrefix(p, m.Path+"/"):
			return fail(notFolder, "%.200q is a note, so there is nothing below it", m.Path)
		}
	}
	return nil
}

// get reads a note, and says what is at its place when there is none.
func (c Config) get(ctx context.Context, scope, p string) (storage.Memory, error) {
	m, err := c.Notes.Memory(ctx, scope, p)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return m, c.absent(ctx, scope, p)
	case err != nil:
		return m, broken(err)
	}
	return m, nil
}

func (c Config) absent(ctx context.Context, scope, p string) error {
	if err := c.fits(ctx, scope, p); err != nil {
		return err
	}
	return fail(noEntry, "there is no note %.200q; memory_list shows what there is", p)
}

// A Refused is why a note cannot be written, in a sentence for people.
type Refused struct{ Text string }

func (r *Refused) Error() string { return r.Text }

// Save writes a note for a person, by the rules of the tools; *Refused.
func Save(ctx context.Context, notes storage.Memories, scope, p, text string, by storage.MemoryChange) error {
	c := Config{Notes: notes}
	p, err := clean(p)
	if err == nil {
		err = c.fits(ctx, scope, p)
	}
	if err == nil {
		err = within(text)
	}
	if err == nil {
		err = broken(notes.SaveMemory(ctx, scope, storage.Memory{Path: p, Text: text, MemoryChange: by}, MaxScope))
	}
	if f, ok := errors.AsType[*tools.Fault](err); ok {
		return &Refused{f.Text}
	}
	return err
}

// edit changes a note by a call, once, whatever others write meanwhile. It returns
// storage.ErrNotFound, and faults, of next as they are.
func (c Config) edit(ctx context.Context, env tools.Env, scope, p string, next func(old storage.Memory, found bool) (text string, tainted bool, err error)) error {
	err := c.Notes.ChangeMemory(ctx, scope, p, change(env), MaxScope, func(old storage.Memory, found bool) (string, bool, error) {
		text, tainted, err := next(old, found)
		if err == nil {
			err = within(text)
		}
		return text, tainted, err
	})
	if f, ok := errors.AsType[*tools.Fault](err); ok {
		return f
	}
	if errors.Is(err, storage.ErrNotFound) {
		return storage.ErrNotFound
	}
	return broken(err)
}

func within(text string) error {
	switch {
	case len(text) > MaxNote:
		return fail(overQuota, "the note would have %d bytes, the limit is %d; split it", len(text), MaxNote)
	case !utf8.ValidString(text):
		return fail(invalid, "the note is not UTF-8")
	}
	return nil
}

func change(env tools.Env) storage.MemoryChange {
	return storage.MemoryChange{Agent: env.Agent.ID, Run: env.Run, Call: env.CallID, Tainted: env.Tainted}
}

// broken is an error of the store; its words are for the operator.
func broken(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, storage.ErrTooMany):
		return fail(overQuota, "this memory is full (%d MiB or %d notes); delete or shorten notes first", MaxScope>>20, storage.MaxMemories)
	case errors.Is(err, storage.ErrFull):
		return fail(overQuota, "there is no space left to write")
	}
	return fmt.Errorf("the memory cannot be reached now; try again later: %w", err)
}
