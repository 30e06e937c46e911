package documents

import (
	"context"
	"errors"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/textfile"
)

func spec(name, description string, effect tools.Effect) tools.Spec {
	return tools.Spec{
		Tool: llm.Tool{Name: name, Description: description}, Effect: effect,
		Undoes: effect != tools.ReadOnly, Public: effect != tools.ReadOnly, Scopes: []string{"files"},
	}
}

func argument(err error) error {
	if errors.Is(err, textfile.ErrTooLong) {
		return fail(OverQuota, "%v", err)
	}
	return fail(Invalid, "%v", err)
}

func fileTools(b Source) []tools.Tool {
	return textfile.Set{
		Example: "notes/plan.md", MaxWrite: MaxFile, Spec: spec, Argument: argument, Missing: func(err error) bool { return hasCode(err, NoEntry) },
		Open: func(_ context.Context, env tools.Env, path string) (textfile.Files, string, error) {
			path, err := clean(path)
			if err != nil {
				return nil, "", err
			}
			files, err := b(env)
			return place{files, env}, path, err
		},
	}.Tools()
}

type place struct {
	files Backend
	env   tools.Env
}

func (p place) Read(ctx context.Context, path string, _ bool) (string, error) {
	return readText(ctx, p.files, path)
}

func (p place) Write(ctx context.Context, path, text, from string) (_ tools.Result, err error) {
	tainted := p.env.Tainted
	if from != "" && !tainted {
		if tainted, err = untrusted(ctx, p.files, from); err != nil {
			return tools.Result{}, err
		}
	}
	return writeKept(ctx, p.files, p.env, path, text, tainted)
}

func (p place) Wrote(ctx context.Context, path, text string) (tools.Result, bool, error) {
	wrote, err := wrote(ctx, p.files, p.env, path, text)
	if err != nil || !wrote {
		return tools.Result{}, false, err
	}
	return changed(p.env, path, true), true, nil
}

func (p place) Delete(ctx context.Context, path string) (tools.Result, error) {
	return removeKept(ctx, p.files, p.env, path)
}

func (p place) Show(ctx context.Context, path, text string) (tools.Result, error) {
	return result(ctx, p.files, text, path)
}

func readText(ctx context.Context, files Backend, path string) (string, error) {
	text, err := files.Read(ctx, path)
	switch {
	case err != nil:
		return "", err
	case len(text) > MaxFile:
		return "", tooLong(path, int64(len(text)))
	case !textfile.IsText(text):
		return "", fail(Invalid, "%.200q is not text", path)
	}
	return text, nil
}

func writable(path, text string) error {
	if len(text) > MaxFile {
		return fail(OverQuota, "%.200q would have %d bytes, the limit is %d", path, len(text), MaxFile)
	}
	if !textfile.IsText(text) {
		return fail(Invalid, "the content for %.200q is not text", path)
	}
	return nil
}
