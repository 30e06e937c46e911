package files

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/textfile"
	"github.com/claybot/claybot/workspace"
)

const (
	maxFiles  = 20_000 // that are looked at in a list
	maxOpened = 2_000  // that are read
	maxBytes  = 64 << 20
	maxFile   = 1 << 20 // of a file that is searched
	maxTime   = 30 * time.Second
)

// asides are folders that are passed over unless the path names one: they hold
// what others made.
var asides = []string{".git", ".claybot", "node_modules"}

const asideText = " The folders .git, .claybot and node_modules are left out, unless path leads into them."

func listFiles(open Opener) tools.Tool {
	type input struct {
		Path    string `json:"path,omitempty" jsonschema:"the folder; that of the workspace when absent"`
		Pattern string `json:"pattern,omitempty" jsonschema:"such as *.md, or **/*.go for all folders; * ? [a-z] stand for parts of a name, ** for folders. When absent: what is in the folder, and nothing below"`
	}
	s := spec("list_files", "Lists files of your workspace with their size in bytes. Folders end with a slash."+asideText, tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if in.Pattern == "" {
			in.Pattern = "*"
		}
		p, err := textfile.NewPattern("pattern", in.Pattern)
		if err != nil {
			return tools.Result{}, argument(err)
		}
		_, found, more, err := list(ctx, open, env, in.Path)
		if err != nil {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		var lines []string
		for _, f := range found {
			switch {
			case !p.Match(f.below):
			case f.Dir:
				lines = append(lines, f.Path+"/")
			default:
				lines = append(lines, fmt.Sprintf("%s (%d bytes)", f.Path, f.Size))
			}
		}
		text := textfile.Shown(lines, "(no file fits)")
		if more {
			text += fmt.Sprintf("\n[there are more than %d files; name a folder with fewer]", maxFiles)
		}
		return tools.Result{Text: text}, nil
	})
}

type found struct {
	workspace.File
	below string
}

func list(ctx context.Context, open Opener, env tools.Env, dir string) (w workspace.Workspace, all []found, more bool, err error) {
	if w, err = open(ctx, env); err != nil {
		return nil, nil, false, tools.WorkspaceFault(err)
	}
	listed, more, err := w.List(ctx, dir, maxFiles)
	if err != nil {
		return w, nil, false, err // as it is: a file is no folder, which a search wants to know
	}
	// Paths are relative to the workspace, dir may have other forms. The first that
	// is listed lies in dir itself.
	depth := 0
	if len(listed) > 0 {
		depth = strings.Count(listed[0].Path, "/")
	}
	for _, f := range listed {
		parts := strings.Split(f.Path, "/")
		if depth >= len(parts) {
			continue
		}
		below := parts[depth:]
		if !aside(below, f.Dir) {
			all = append(all, found{f, strings.Join(below, "/")})
		}
	}
	return w, all, more, nil
}

// aside reports what is passed over: what is in such a folder, not itself.
func aside(below []string, dir bool) bool {
	if !dir || len(below) > 1 {
		below = below[:len(below)-1]
	} else {
		return false
	}
	for _, part := range below {
		for _, a := range asides {
			if part == a {
				return true
			}
		}
	}
	return false
}

func searchFiles(open Opener) tools.Tool {
	type input struct {
		Pattern string `json:"pattern" jsonschema:"a regular expression (RE2); (?i) at its beginning ignores case"`
		Path    string `json:"path,omitempty" jsonschema:"a folder or a file to search; everything when absent"`
		Glob    string `json:"glob,omitempty" jsonschema:"only files whose path from there fits, such as **/*.go"`
	}
	s := spec("search_files", "Finds lines in text files of your workspace by a regular expression. Shows file, line number and line, at most 200."+asideText, tools.ReadOnly)
	s.Timeout = 2 * maxTime
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		lines, err := textfile.NewFinder(in.Pattern, in.Glob)
		if err != nil {
			return tools.Result{}, argument(err)
		}
		f := finder{Finder: lines, until: time.Now().Add(maxTime)}
		w, files, more, err := list(ctx, open, env, in.Path)
		if err != nil {
			return oneFile(ctx, w, &f, in.Path, err)
		}
		f.Unseen = more
		for _, file := range files {
			if file.Dir || !f.Wants(file.below) {
				continue
			}
			if goOn, err := f.file(ctx, w, file.File); err != nil || !goOn {
				return tools.Result{Text: f.String()}, err
			}
		}
		return tools.Result{Text: f.String()}, nil
	})
}

func oneFile(ctx context.Context, w workspace.Workspace, f *finder, path string, err error) (tools.Result, error) {
	if w == nil || !workspace.Is(err, workspace.Failed) && !workspace.Is(err, workspace.NotFound) {
		return tools.Result{}, tools.WorkspaceFault(err)
	}
	text, failed := readText(ctx, w, path, maxRead)
	if failed != nil {
		if fault, ok := errors.AsType[*tools.Fault](failed); ok && fault.Code == string(workspace.NotFound) {
			failed = tools.WorkspaceFault(err)
		}
		return tools.Result{}, failed
	}
	f.Search(path, text)
	return tools.Result{Text: f.String()}, nil
}

type finder struct {
	*textfile.Finder
	until  time.Time
	opened int
	bytes  int64
}

// file searches a file, and reports whether to go on.
func (f *finder) file(ctx context.Context, w workspace.Workspace, file workspace.File) (bool, error) {
	if f.opened >= maxOpened || f.bytes >= maxBytes || time.Now().After(f.until) {
		f.Unseen = true
		return false, nil
	}
	if file.Size > maxFile {
		f.Skipped++
		return true, nil
	}
	f.opened++
	b, err := w.ReadFile(ctx, file.Path, maxFile)
	switch {
	case workspace.Is(err, workspace.NotFound): // gone meanwhile
		return true, nil
	case workspace.Is(err, workspace.TooBig), workspace.Is(err, workspace.Failed), workspace.Is(err, workspace.Outside), workspace.Is(err, workspace.Refused):
		f.Skipped++ // a link, a pipe
		return true, nil
	case err != nil:
		return false, tools.WorkspaceFault(err)
	}
	f.bytes += int64(len(b))
	if text := string(b); textfile.IsText(text) {
		f.Search(file.Path, text)
	} else {
		f.Skipped++
	}
	return !f.Full, nil
}
