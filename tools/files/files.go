// Package files are the tools with which an agent works on the files of its
// workspace: read_file, write_file, edit_file, list_files, search_files.
//
// All paths go through the workspace, which keeps them inside. An error begins
// with what the workspace says.
//
// Only cmd imports it.
package files

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
)

// Limits of files, in bytes.
const (
	maxRead  = 8 << 20 // of a file of which a part is shown
	maxWrite = 1 << 20 // of a file that is written or edited
)

// Limits of what one call shows. A result above 32 KiB would be cut in the
// middle; the rest is room for what is said around it.
const (
	maxShown = 31 << 10
	maxLines = 2000
	maxLine  = 2000 // bytes of one line
)

// An Opener finds the workspace of a call. Its errors are those of a workspace.
type Opener = func(ctx context.Context, env tools.Env) (workspace.Workspace, error)

// Tools are all tools of this package, on the workspace that open finds.
func Tools(open Opener) []tools.Tool {
	return []tools.Tool{readFile(open), writeFile(open), editFile(open), listFiles(open), searchFiles(open)}
}

// spec is what all tools of this package have in common.
func spec(name, description string, effect tools.Effect) tools.Spec {
	return tools.Spec{Tool: llm.Tool{Name: name, Description: description}, Effect: effect, Class: tools.Inside, Scopes: []string{"files"}}
}

func invalid(format string, args ...any) error {
	return &tools.Fault{Code: tools.FaultArguments, Text: fmt.Sprintf(format, args...)}
}

func readFile(open Opener) tools.Tool {
	type input struct {
		Path   string `json:"path" jsonschema:"the file, such as src/main.go"`
		Offset int    `json:"offset,omitempty" jsonschema:"the first line to show; 1 when absent"`
		Limit  int    `json:"limit,omitempty" jsonschema:"how many lines, at most 2000; 2000 when absent"`
	}
	s := spec("read_file", "Reads a text file of your workspace. Lines are shown with their numbers and a tab before them, which are no part of the file.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if in.Offset < 0 {
			return tools.Result{}, invalid("field offset: %d, want 1 or more", in.Offset)
		}
		if in.Limit < 0 || in.Limit > maxLines {
			return tools.Result{}, invalid("field limit: %d, want 1 to %d", in.Limit, maxLines)
		}
		w, err := at(ctx, open, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		text, err := readText(ctx, w, in.Path, maxRead)
		if err != nil {
			return tools.Result{}, err
		}
		shown, err := numbered(in.Path, text, max(in.Offset, 1), in.Limit)
		return tools.Result{Text: shown}, err
	})
}

// at opens the workspace for a call that names a file.
func at(ctx context.Context, open Opener, env tools.Env, path string) (workspace.Workspace, error) {
	if path == "" {
		return nil, invalid("field path: want the path of a file, such as notes/plan.md")
	}
	w, err := open(ctx, env)
	return w, tools.WorkspaceFault(err)
}

// readText reads a file that must be text.
func readText(ctx context.Context, w workspace.Workspace, path string, limit int64) (string, error) {
	b, err := w.ReadFile(ctx, path, limit)
	if err != nil {
		return "", tools.WorkspaceFault(err)
	}
	if text := string(b); isText(text) {
		return text, nil
	}
	return "", &tools.Fault{Code: "not_text", Text: fmt.Sprintf("%.200q is not text but %s, of %d bytes; use the shell to work on it",
		path, http.DetectContentType(b), len(b))}
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// numbered shows limit lines of a text from line first on, as many as there is
// room for, and says what it left out.
func numbered(path, text string, first, limit int) (string, error) {
	if text == "" {
		return "(the file is empty)", nil
	}
	total := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if first > total {
		return "", invalid("field offset: %d, but %.200q has %d lines", first, path, total)
	}
	if limit == 0 {
		limit = maxLines
	}
	var b strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		if number++; number < first {
			continue
		}
		l := fmt.Sprintf("%6d\t%s\n", number, cut(strings.TrimRight(line, "\r\n"), maxLine))
		if number-first >= limit || b.Len()+len(l) > maxShown {
			fmt.Fprintf(&b, "[lines %d to %d of %d; go on with offset %d]", first, number-1, total, number)
			break
		}
		b.WriteString(l)
	}
	return b.String(), nil
}

// cut shortens a line and says by how much.
func cut(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	end := limit
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s [… %d more bytes]", line[:end], len(line)-end)
}

func writeFile(open Opener) tools.Tool {
	type input struct {
		Path string `json:"path" jsonschema:"the file, such as src/main.go; folders are made as needed"`
		Text string `json:"text" jsonschema:"the whole content, at most 1 MiB"`
	}
	s := spec("write_file", "Makes a text file in your workspace, or replaces all of its content.", tools.Idempotent)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if len(in.Text) > maxWrite {
			return tools.Result{}, invalid("field text: %d bytes, the limit is %d", len(in.Text), maxWrite)
		}
		w, err := at(ctx, open, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		if err := w.WriteFile(ctx, in.Path, []byte(in.Text)); err != nil {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		return tools.Result{Text: fmt.Sprintf("%s is written, %d bytes", in.Path, len(in.Text)), What: "wrote " + in.Path}, nil
	})
}

// editFile is Once: where the new text contains the old one, a second edit would
// edit the first.
func editFile(open Opener) tools.Tool {
	type input struct {
		Path string `json:"path" jsonschema:"the file"`
		Old  string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file, without line numbers; with so much around it that it occurs once"`
		New  string `json:"new_text" jsonschema:"the text to put there; empty to delete"`
		All  bool   `json:"all,omitempty" jsonschema:"true: replaces every occurrence"`
	}
	s := spec("edit_file", "Replaces a part of a text file of your workspace by another text.", tools.Once)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		w, err := at(ctx, open, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		text, err := readText(ctx, w, in.Path, maxWrite)
		if err != nil {
			return tools.Result{}, err
		}
		text, n, err := edit(in.Path, text, in.Old, in.New, in.All)
		if err != nil {
			return tools.Result{}, err
		}
		if err := w.WriteFile(ctx, in.Path, []byte(text)); err != nil {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		places := fmt.Sprintf("%d places in %s are changed", n, in.Path)
		if n == 1 {
			places = fmt.Sprintf("1 place in %s is changed", in.Path)
		}
		return tools.Result{Text: places, What: "edited " + in.Path}, nil
	})
}

// edit replaces from by to in a text, and returns in how many places.
func edit(path, text, from, to string, all bool) (string, int, error) {
	if from == "" {
		return "", 0, invalid("field old_text: must not be empty")
	}
	if from == to {
		return "", 0, invalid("field new_text: is the same as old_text")
	}
	if !strings.Contains(text, from) && strings.Contains(text, "\r\n") && !strings.Contains(from, "\r") {
		// Results show no carriage returns, so a model cannot know of them.
		from, to = strings.ReplaceAll(from, "\n", "\r\n"), strings.ReplaceAll(to, "\n", "\r\n")
	}
	first := strings.Index(text, from)
	if first < 0 {
		return "", 0, invalid("field old_text: %.200q has no such text", path)
	}
	n := 1
	if all {
		n = strings.Count(text, from)
	} else if strings.LastIndex(text, from) != first {
		return "", 0, invalid("field old_text: occurs more than once in %.200q; give more of the text around it, or all: true", path)
	}
	if len(text)+n*(len(to)-len(from)) > maxWrite { // before it is made
		return "", 0, invalid("%.200q would become longer than %d bytes", path, maxWrite)
	}
	return strings.Replace(text, from, to, n), n, nil
}
