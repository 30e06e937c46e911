package documents

import (
	"context"
	"fmt"
	"strings"

	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/textfile"
)

func ls(b Source) tools.Tool {
	type input struct {
		Path string `json:"path,omitempty" jsonschema:"the folder; the top one when absent"`
	}
	s := spec("ls", "Lists what is in a folder: files with their size in bytes, folders with a slash and how many files lie below.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		backend, folder, files, err := list(ctx, b, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		return result(ctx, backend, textfile.Shown(entries(folder, files), "(no files)"), pathsOf(files)...)
	})
}

func pathsOf(files []File) []string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}

func list(ctx context.Context, b Source, env tools.Env, path string) (backend Backend, folder string, files []File, err error) {
	if folder, err = cleanFolder(path); err != nil {
		return nil, "", nil, err
	}
	if backend, err = b(env); err != nil {
		return nil, "", nil, err
	}
	files, err = backend.List(ctx, folder)
	return backend, folder, files, err
}

func entries(folder string, files []File) []string {
	var lines []string
	current, count := "", 0 // the subfolder whose files come one after the other
	end := func() {
		if count > 0 {
			lines = append(lines, fmt.Sprintf("%s/ (%s)", current, counted(count)))
		}
		count = 0
	}
	for _, f := range files {
		name := inside(folder, f.Path)
		first, _, deeper := strings.Cut(name, "/")
		if count > 0 && (!deeper || first != current) {
			end()
		}
		if deeper {
			current = first
			count++
		} else {
			lines = append(lines, fmt.Sprintf("%s (%d bytes)", name, f.Size))
		}
	}
	end()
	return lines
}

func inside(folder, path string) string {
	if folder == "" {
		return path
	}
	return strings.TrimPrefix(path, folder+"/")
}

func glob(b Source) tools.Tool {
	type input struct {
		Pattern string `json:"pattern" jsonschema:"such as *.md, or **/*.go for all folders; * ? [a-z] stand for parts of a name, ** for folders"`
		Path    string `json:"path,omitempty" jsonschema:"the folder in which the pattern begins; the top one when absent"`
	}
	s := spec("glob", "Finds files by their names.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		p, err := textfile.NewPattern("pattern", in.Pattern)
		if err != nil {
			return tools.Result{}, argument(err)
		}
		backend, folder, files, err := list(ctx, b, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		var names []string
		for _, f := range files {
			if p.Match(inside(folder, f.Path)) {
				names = append(names, f.Path)
			}
		}
		return result(ctx, backend, textfile.Shown(names, "(no file fits)"), names...)
	})
}

func grep(b Source) tools.Tool {
	type input struct {
		Pattern string `json:"pattern" jsonschema:"a regular expression (RE2); (?i) at its beginning ignores case"`
		Path    string `json:"path,omitempty" jsonschema:"a folder or a file to search; everything when absent"`
		Glob    string `json:"glob,omitempty" jsonschema:"only files whose path from there fits, such as **/*.go"`
	}
	s := spec("grep", "Finds lines in text files by a regular expression. Shows file, line number and line, at most 200.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		f, err := textfile.NewFinder(in.Pattern, in.Glob)
		if err != nil {
			return tools.Result{}, argument(err)
		}
		backend, folder, files, err := list(ctx, b, env, in.Path)
		if hasCode(err, NotFolder) { // a file, then, or something that Read will explain
			var path, text string
			if path, err = clean(in.Path); err == nil {
				text, err = readText(ctx, backend, path)
			}
			if err != nil {
				return tools.Result{}, err
			}
			f.Search(path, text)
			return result(ctx, backend, f.String(), f.Names()...)
		}
		if err != nil {
			return tools.Result{}, err
		}
		var wanted []string
		for _, file := range files {
			if f.Wants(inside(folder, file.Path)) {
				wanted = append(wanted, file.Path)
			}
		}
		if err := searchAll(ctx, f, backend, wanted); err != nil {
			return tools.Result{}, err
		}
		return result(ctx, backend, f.String(), f.Names()...)
	})
}

func searchAll(ctx context.Context, f *textfile.Finder, files Backend, names []string) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := readText(ctx, files, name)
		switch {
		case hasCode(err, NoEntry): // gone meanwhile
		case hasCode(err, Invalid):
			f.Skipped++
		case err != nil:
			return err
		default:
			f.Search(name, text)
		}
		if f.Full {
			break
		}
	}
	return nil
}

func counted(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
