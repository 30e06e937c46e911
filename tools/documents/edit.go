package documents

import (
	"context"
	"errors"
	"fmt"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/textfile"
)

// spec is what all tools of this package have in common.
func spec(name, description string, effect tools.Effect) tools.Spec {
	return tools.Spec{
		Tool: llm.Tool{Name: name, Description: description}, Effect: effect,
		Undoes: effect != tools.ReadOnly, Scopes: []string{"files"},
	}
}

// argument is the Error of an argument that textfile refuses.
func argument(err error) error {
	if errors.Is(err, textfile.ErrTooLong) {
		return fail(OverQuota, "%v", err)
	}
	return fail(Invalid, "%v", err)
}

func readFile(b Source) tools.Tool {
	type input struct {
		Path   string `json:"path" jsonschema:"the file, such as notes/plan.md"`
		Offset int    `json:"offset,omitempty" jsonschema:"the first line to show; 1 when absent"`
		Limit  int    `json:"limit,omitempty" jsonschema:"how many lines, at most 2000; 2000 when absent"`
	}
	s := spec("read_file", "Reads a text file. Lines are shown with their numbers and a tab before them, which are no part of the file.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		path, err := clean(in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		files, text, err := readText(ctx, b, env, path)
		if err != nil {
			return tools.Result{}, err
		}
		shown, err := textfile.Numbered(path, text, in.Offset, in.Limit)
		if err != nil {
			return tools.Result{}, argument(err)
		}
		return result(ctx, files, shown, path)
	})
}

// readText opens the backend and reads a file that must be text.
func readText(ctx context.Context, b Source, env tools.Env, path string) (Backend, string, error) {
	files, err := b(env)
	if err != nil {
		return nil, "", err
	}
	text, err := files.Read(ctx, path)
	if err != nil {
		return nil, "", err
	}
	if len(text) > MaxFile {
		return nil, "", tooLong(path, int64(len(text)))
	}
	if !textfile.IsText(text) {
		return nil, "", fail(Invalid, "%.200q is not text", path)
	}
	return files, text, nil
}

func writeFile(b Source) tools.Tool {
	type input struct {
		Path string `json:"path" jsonschema:"the file, such as notes/plan.md; folders are made as needed"`
		Text string `json:"text" jsonschema:"the whole content, at most 1 MiB"`
	}
	s := spec("write_file", "Makes a text file, or replaces all of its content.", tools.Idempotent)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		path, err := clean(in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		files, err := b(env)
		if err != nil {
			return tools.Result{}, err
		}
		r, err := writeKept(ctx, files, env, path, in.Text, env.Tainted)
		r.Text = fmt.Sprintf("%s is written, %d bytes", path, len(in.Text))
		return r, err
	})
}

// writable checks a new content.
func writable(path, text string) error {
	if len(text) > MaxFile {
		return fail(OverQuota, "%.200q would have %d bytes, the limit is %d", path, len(text), MaxFile)
	}
	if !textfile.IsText(text) {
		return fail(Invalid, "the content for %.200q is not text", path)
	}
	return nil
}

// editFile is Once: where the new text contains the old one, a second edit would
// edit the first.
func editFile(b Source) tools.Tool {
	type input struct {
		Path string `json:"path" jsonschema:"the file"`
		Old  string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file, without line numbers; with so much around it that it occurs once"`
		New  string `json:"new_text" jsonschema:"the text to put there; empty to delete"`
		All  bool   `json:"all,omitempty" jsonschema:"true: replaces every occurrence"`
	}
	s := spec("edit_file", "Replaces a part of a text file by another text.", tools.Once)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		path, err := clean(in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		files, text, err := readText(ctx, b, env, path)
		if err != nil {
			return tools.Result{}, err
		}
		text, n, err := textfile.Edit(path, text, in.Old, in.New, in.All, MaxFile)
		if err != nil {
			return tools.Result{}, argument(err)
		}
		marked, err := untrusted(ctx, files, path)
		if err != nil {
			return tools.Result{}, err
		}
		r, err := writeKept(ctx, files, env, path, text, env.Tainted || marked)
		r.Text = fmt.Sprintf("%d places in %s are changed", n, path)
		if n == 1 {
			r.Text = fmt.Sprintf("1 place in %s is changed", path)
		}
		return r, err
	})
}
