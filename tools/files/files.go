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

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/textfile"
	"github.com/claybot/claybot/workspace"
)

// Limits of files, in bytes.
const (
	maxRead  = 8 << 20 // of a file of which a part is shown
	maxWrite = 1 << 20 // of a file that is written or edited
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

// argument is the fault of an argument that textfile refuses.
func argument(err error) error {
	if err == nil {
		return nil
	}
	return invalid("%v", err)
}

func readFile(open Opener) tools.Tool {
	type input struct {
		Path   string `json:"path" jsonschema:"the file, such as src/main.go"`
		Offset int    `json:"offset,omitempty" jsonschema:"the first line to show; 1 when absent"`
		Limit  int    `json:"limit,omitempty" jsonschema:"how many lines, at most 2000; 2000 when absent"`
	}
	s := spec("read_file", "Reads a text file of your workspace. Lines are shown with their numbers and a tab before them, which are no part of the file.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		w, err := at(ctx, open, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		text, err := readText(ctx, w, in.Path, maxRead)
		if err != nil {
			return tools.Result{}, err
		}
		shown, err := textfile.Numbered(in.Path, text, in.Offset, in.Limit)
		return tools.Result{Text: shown}, argument(err)
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
	if text := string(b); textfile.IsText(text) {
		return text, nil
	}
	return "", &tools.Fault{Code: "not_text", Text: fmt.Sprintf("%.200q is not text but %s, of %d bytes; use the shell to work on it",
		path, http.DetectContentType(b), len(b))}
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
		text, n, err := textfile.Edit(in.Path, text, in.Old, in.New, in.All, maxWrite)
		if err != nil {
			return tools.Result{}, argument(err)
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
