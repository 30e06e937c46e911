package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

func list(c Config) tools.Tool {
	type input struct {
		Scope string `json:"scope,omitempty" jsonschema:"agent (your own notes), owner (shared by all agents of your person) or global; agent when absent"`
		Path  string `json:"path,omitempty" jsonschema:"only what is below this folder"`
	}
	s := spec("memory_list", "Lists your notes: path, size and first line.", tools.ReadOnly)
	return tools.New(c.shared(s, false), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		scope, err := c.scope(env, in.Scope, false)
		if err != nil {
			return tools.Result{}, err
		}
		folder, err := cleanFolder(in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		all, err := c.Notes.Memories(ctx, scope)
		if err != nil {
			return tools.Result{}, broken(err)
		}
		var b strings.Builder
		tainted := false
		for _, m := range all {
			if folder != "" && m.Path != folder && !strings.HasPrefix(m.Path, folder+"/") {
				continue
			}
			tainted = tainted || m.Tainted
			fmt.Fprintf(&b, "%s (%d bytes)%s\n", m.Path, m.Size, title(m))
		}
		switch {
		case b.Len() == 0 && folder != "":
			return tools.Result{}, fail(noEntry, "there is nothing below %.200q", folder)
		case b.Len() == 0:
			return tools.Result{Text: "(no notes)"}, nil
		}
		return tools.Result{Text: b.String(), Untrusted: tainted}, nil
	})
}

func title(m storage.Memory) string {
	if m.Title == "" {
		return ""
	}
	return ": " + m.Title
}

func read(c Config) tools.Tool {
	type input struct {
		Path  string `json:"path" jsonschema:"such as people/birthdays.md"`
		Scope string `json:"scope,omitempty" jsonschema:"agent, owner or global; agent when absent"`
	}
	s := spec("memory_read", "Reads a note.", tools.ReadOnly)
	s.Brief = []string{"path"}
	return tools.New(c.shared(s, false), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		scope, p, err := c.at(env, in.Scope, in.Path, false)
		if err != nil {
			return tools.Result{}, err
		}
		m, err := c.get(ctx, scope, p)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: cmp.Or(m.Text, "(the note is empty)"), Untrusted: m.Tainted}, nil
	})
}

func (c Config) at(env tools.Env, tree, p string, write bool) (scope, path string, err error) {
	if scope, err = c.scope(env, tree, write); err != nil {
		return "", "", err
	}
	path, err = clean(p)
	return scope, path, err
}

func search(c Config) tools.Tool {
	type input struct {
		Query string `json:"query" jsonschema:"words, or beginnings of words, that a note must all have"`
		Scope string `json:"scope,omitempty" jsonschema:"agent, owner or global; all that may be read here when absent"`
	}
	s := spec("memory_search", "Finds notes, the best first.", tools.ReadOnly)
	s.Brief = []string{"query"}
	return tools.New(c.shared(s, false), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		scopes, err := c.searched(ctx, env, in.Scope)
		if err != nil {
			return tools.Result{}, err
		}
		found, err := c.Notes.FindMemories(ctx, scopes, in.Query, maxFound)
		if err != nil {
			return tools.Result{}, broken(err)
		}
		if len(found) == 0 {
			return tools.Result{Text: "(no note has these words; fewer or other ones may help)"}, nil
		}
		var b strings.Builder
		tainted := false
		for _, f := range found {
			tree, _, _ := strings.Cut(f.Scope, "/")
			fmt.Fprintf(&b, "%s: %s\n  %s\n", tree, f.Path, strings.Join(strings.Fields(f.Excerpt), " "))
			tainted = tainted || f.Tainted
		}
		return tools.Result{Text: b.String(), Untrusted: tainted}, nil
	})
}

// searched are the trees that a search looks at: without one that is named, those that
// disclose nothing.
func (c Config) searched(ctx context.Context, env tools.Env, tree string) ([]string, error) {
	if tree != "" {
		scope, err := c.scope(env, tree, false)
		return []string{scope}, err
	}
	return scopesOf(env.Agent, c.Discloses == nil || c.Discloses(ctx, env, false) == nil), nil
}

func scopesOf(a claybot.Agent, withOwner bool) []string {
	all := []string{scopeAgent + "/" + string(a.ID)}
	if owner := a.Descriptor.OwnerID(); owner != "" && withOwner {
		all = append(all, scopeOwner+"/"+owner)
	}
	return append(all, scopeGlobal)
}

// Index returns the part of an agent's prompt that lists its notes, without the titles that
// tainted runs wrote; empty if there are none. It has at most MaxIndex bytes. With withOwner,
// the notes of its person are among them. private reports whether it shows words of notes that
// not everybody may read.
func Index(ctx context.Context, notes storage.Memories, a claybot.Agent, withOwner bool) (text string, private bool, err error) {
	var b strings.Builder
	left := 0
	all, err := notes.Memories(ctx, scopesOf(a, withOwner)...)
	if err != nil {
		return "", false, fmt.Errorf("index of memory: %w", err)
	}
	private = slices.ContainsFunc(all, func(m storage.Memory) bool { return m.Scope != scopeGlobal && !m.Tainted })
	for _, m := range all {
		tree, _, _ := strings.Cut(m.Scope, "/")
		line := fmt.Sprintf("- %s: %s%s\n", tree, m.Path, title(m))
		if m.Tainted { // its words are data, and its name says enough
			line = fmt.Sprintf("- %s: a note of %d bytes from an outside source\n", tree, m.Size)
		}
		if b.Len()+len(line) > MaxIndex-300 {
			left++
			continue
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		return "", private, nil
	}
	if left > 0 {
		fmt.Fprintf(&b, "- and %d more; memory_list shows them\n", left)
	}
	return "Your notes from earlier (memory_read shows one, memory_search finds words):\n" + b.String(), private, nil
}
