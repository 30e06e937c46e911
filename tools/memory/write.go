package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

func write(c Config) tools.Tool {
	type input struct {
		Path  string `json:"path" jsonschema:"such as people/birthdays.md"`
		Text  string `json:"text" jsonschema:"in Markdown; lists show its first line"`
		Scope string `json:"scope,omitempty" jsonschema:"agent, owner or global; agent when absent"`
	}
	s := spec("memory_write", "Writes or replaces a note for later conversations.", tools.Idempotent)
	s.Brief = []string{"path", "text"}
	return tools.New(c.shared(s, true), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		p, err := c.put(ctx, env, in.Scope, in.Path, func(storage.Memory, bool) (string, bool, error) { return in.Text, false, nil })
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: fmt.Sprintf("Noted in %s (%d bytes).", p, len(in.Text))}, nil
	})
}

// put makes or changes the note at a path, and returns the one form of the path.
func (c Config) put(ctx context.Context, env tools.Env, tree, path string, next func(old storage.Memory, found bool) (string, bool, error)) (string, error) {
	scope, p, err := c.at(env, tree, path, true)
	if err == nil {
		err = c.fits(ctx, scope, p)
	}
	if err == nil {
		err = c.edit(ctx, env, scope, p, next)
	}
	return p, err
}

func appendTo(c Config) tools.Tool {
	type input struct {
		Path  string `json:"path" jsonschema:"the note; it is made when it is not there"`
		Text  string `json:"text" jsonschema:"what is added at the end, on a line of its own"`
		Scope string `json:"scope,omitempty" jsonschema:"agent, owner or global; agent when absent"`
	}
	s := spec("memory_append", "Adds text to the end of a note.", tools.Idempotent)
	return tools.New(c.shared(s, true), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		p, err := c.put(ctx, env, in.Scope, in.Path, func(old storage.Memory, _ bool) (string, bool, error) {
			text := old.Text
			if text != "" && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			return text + in.Text, old.Tainted, nil
		})
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: "Added to " + p + "."}, nil
	})
}

func update(c Config) tools.Tool {
	type input struct {
		Path  string `json:"path" jsonschema:"the note"`
		Old   string `json:"old" jsonschema:"the text to replace, exactly as it stands there, once"`
		New   string `json:"new" jsonschema:"what stands there afterwards"`
		Scope string `json:"scope,omitempty" jsonschema:"agent, owner or global; agent when absent"`
	}
	s := spec("memory_update", "Replaces a piece of a note.", tools.Idempotent)
	return tools.New(c.shared(s, true), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		scope, p, err := c.at(env, in.Scope, in.Path, true)
		if err != nil {
			return tools.Result{}, err
		}
		err = c.edit(ctx, env, scope, p, func(old storage.Memory, found bool) (string, bool, error) {
			switch n := strings.Count(old.Text, in.Old); {
			case !found:
				return "", false, storage.ErrNotFound
			case in.Old == "":
				return "", false, fail(invalid, "field old: is empty")
			case n == 0:
				return "", false, fail(invalid, "field old: this text is not in %.200q; read the note first", p)
			case n > 1:
				return "", false, fail(invalid, "field old: this text is in %.200q %d times; give more of what is around it", p, n)
			}
			return strings.Replace(old.Text, in.Old, in.New, 1), old.Tainted, nil
		})
		if errors.Is(err, storage.ErrNotFound) {
			err = c.absent(ctx, scope, p)
		}
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: "Changed " + p + "."}, nil
	})
}

func remove(c Config) tools.Tool {
	type input struct {
		Path  string `json:"path" jsonschema:"the note"`
		Scope string `json:"scope,omitempty" jsonschema:"agent, owner or global; agent when absent"`
	}
	s := spec("memory_delete", "Deletes a note.", tools.Idempotent)
	return tools.New(c.shared(s, true), func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		scope, p, err := c.at(env, in.Scope, in.Path, true)
		if err != nil {
			return tools.Result{}, err
		}
		err = c.Notes.DropMemory(ctx, scope, p, change(env))
		if errors.Is(err, storage.ErrNotFound) {
			if c.removed(ctx, env, scope, p) {
				return tools.Result{Text: "Deleted " + p + "."}, nil
			}
			_, err = c.get(ctx, scope, p)
			return tools.Result{}, err
		}
		if err != nil {
			return tools.Result{}, broken(err)
		}
		return tools.Result{Text: "Deleted " + p + "."}, nil
	})
}

// removed reports whether an earlier try of the same call took the note away.
func (c Config) removed(ctx context.Context, env tools.Env, scope, p string) bool {
	last, err := c.Versions.MemoryVersions(ctx, scope, p, 1)
	return err == nil && len(last) == 1 && last[0].Gone && last[0].Run == env.Run && last[0].Call == env.CallID && env.CallID != ""
}
