// Package files are the tools with which an agent works on the files of its
// workspace: read_file, write_file, edit_file, apply_patch, list_files, search_files.
//
// All paths go through the workspace, which keeps them inside. An error begins
// with what the workspace says.
//
// Only cmd imports it.
package files

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/textfile"
	"github.com/claybot/claybot/workspace"
)

const (
	maxRead  = 8 << 20 // of a file of which a part is shown
	maxWrite = 1 << 20 // of a file that is written or edited
)

// An Opener finds the workspace of a call. Its errors are those of a workspace.
type Opener = func(ctx context.Context, env tools.Env) (workspace.Workspace, error)

// Tools are all tools of this package, on the workspace that open finds.
func Tools(open Opener) []tools.Tool {
	set := textfile.Set{
		Where: "your workspace", Example: "src/main.go", MaxWrite: maxWrite, Spec: spec, Argument: argument,
		Missing: func(err error) bool {
			f, ok := errors.AsType[*tools.Fault](err)
			return ok && f.Code == string(workspace.NotFound)
		},
		Open: func(ctx context.Context, env tools.Env, path string) (textfile.Files, string, error) {
			if path == "" {
				return nil, "", invalid("field path: want the path of a file, such as notes/plan.md")
			}
			w, err := open(ctx, env)
			return place{w}, path, tools.WorkspaceFault(err)
		},
	}
	return append(set.Tools(), listFiles(open), searchFiles(open))
}

func spec(name, description string, effect tools.Effect) tools.Spec {
	return tools.Spec{Tool: llm.Tool{Name: name, Description: description}, Effect: effect, Public: effect != tools.ReadOnly, Class: tools.Inside, Scopes: []string{"files"}}
}

func invalid(format string, args ...any) error {
	return &tools.Fault{Code: tools.FaultArguments, Text: fmt.Sprintf(format, args...)}
}

func argument(err error) error {
	if err == nil {
		return nil
	}
	return invalid("%v", err)
}

type place struct{ workspace.Workspace }

func (p place) Read(ctx context.Context, path string, edited bool) (string, error) {
	if edited {
		return readText(ctx, p, path, maxWrite)
	}
	return readText(ctx, p, path, maxRead)
}

func (p place) Write(ctx context.Context, path, text, from string) (tools.Result, error) {
	did := texts.DidWriteFile
	if from != "" {
		did = texts.DidEditFile
	}
	if len(text) > maxWrite {
		return tools.Result{}, invalid("field text: %d bytes, the limit is %d", len(text), maxWrite)
	}
	err := p.WriteFile(ctx, path, []byte(text))
	return tools.Result{What: fmt.Sprintf(did, path)}, tools.WorkspaceFault(err)
}

// Wrote knows nothing: a workspace keeps no account of what calls write.
func (place) Wrote(context.Context, string, string) (tools.Result, bool, error) {
	return tools.Result{}, false, nil
}

func (p place) Delete(ctx context.Context, path string) (tools.Result, error) {
	files, ok := p.Workspace.(workspace.Remover)
	if !ok {
		return tools.Result{}, &tools.Fault{Code: tools.FaultFailed, Text: "this workspace cannot delete files; use the shell"}
	}
	return tools.Result{What: fmt.Sprintf(texts.DidDeleteFile, path)}, tools.WorkspaceFault(files.Remove(ctx, path))
}

func (place) Show(_ context.Context, _, text string) (tools.Result, error) {
	return tools.Result{Text: text}, nil
}

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
