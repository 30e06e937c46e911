package documents

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/claybot/claybot/tools"
)

// Limits of what a search shows.
const (
	maxHits    = 200
	maxHitLine = 300 // bytes of a line
)

func ls(b Source) tools.Tool {
	type input struct {
		Path string `json:"path,omitempty" jsonschema:"the folder; the top one when absent"`
	}
	s := spec("ls", "Lists what is in a folder: files with their size in bytes, folders with a slash and how many files lie below.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		folder, files, err := list(ctx, b, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		return named(ctx, b, env, shown(entries(folder, files), "(no files)"), pathsOf(files))
	})
}

// named is a result that shows names of files.
func named(ctx context.Context, b Source, env tools.Env, text string, paths []string) (tools.Result, error) {
	files, err := b(env)
	if err != nil {
		return tools.Result{}, err
	}
	return result(ctx, files, text, paths...)
}

func pathsOf(files []File) []string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths
}

// list checks the path of a folder and lists it.
func list(ctx context.Context, b Source, env tools.Env, path string) (folder string, files []File, err error) {
	if folder, err = cleanFolder(path); err != nil {
		return "", nil, err
	}
	backend, err := b(env)
	if err != nil {
		return "", nil, err
	}
	files, err = backend.List(ctx, folder)
	return folder, files, err
}

// entries are the direct contents of a folder, of all files below it.
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

// inside is a path below a folder as seen from there.
func inside(folder, path string) string {
	if folder == "" {
		return path
	}
	return strings.TrimPrefix(path, folder+"/")
}

// shown joins lines as long as there is room, and says how many are missing.
func shown(lines []string, none string) string {
	if len(lines) == 0 {
		return none
	}
	var b strings.Builder
	for i, l := range lines {
		if b.Len()+len(l)+1 > maxShown {
			fmt.Fprintf(&b, "[%d more left out; narrow it down]", len(lines)-i)
			return b.String()
		}
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func glob(b Source) tools.Tool {
	type input struct {
		Pattern string `json:"pattern" jsonschema:"such as *.md, or **/*.go for all folders; * ? [a-z] stand for parts of a name, ** for folders"`
		Path    string `json:"path,omitempty" jsonschema:"the folder in which the pattern begins; the top one when absent"`
	}
	s := spec("glob", "Finds files by their names.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		p, err := newPattern("pattern", in.Pattern)
		if err != nil {
			return tools.Result{}, err
		}
		folder, files, err := list(ctx, b, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		var names []string
		for _, f := range files {
			if p.match(inside(folder, f.Path)) {
				names = append(names, f.Path)
			}
		}
		return named(ctx, b, env, shown(names, "(no file fits)"), names)
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
		if in.Pattern == "" || len(in.Pattern) > maxPattern {
			return tools.Result{}, fail(Invalid, "field pattern: %d bytes, want 1 to %d", len(in.Pattern), maxPattern)
		}
		re, err := regexp.Compile(in.Pattern)
		if err != nil {
			return tools.Result{}, fail(Invalid, "field pattern: %v", err)
		}
		var only pattern
		if in.Glob != "" {
			if only, err = newPattern("glob", in.Glob); err != nil {
				return tools.Result{}, err
			}
		}
		var f finder
		folder, files, err := list(ctx, b, env, in.Path)
		if hasCode(err, NotFolder) { // a file, then, or something that Read will explain
			var path, text string
			if path, err = clean(in.Path); err == nil {
				_, text, err = readText(ctx, b, env, path)
			}
			if err != nil {
				return tools.Result{}, err
			}
			f.search(re, path, text)
			return named(ctx, b, env, f.String(), f.names)
		}
		if err != nil {
			return tools.Result{}, err
		}
		var wanted []string
		for _, file := range files {
			if only == nil || only.match(inside(folder, file.Path)) {
				wanted = append(wanted, file.Path)
			}
		}
		if err := f.searchAll(ctx, b, env, re, wanted); err != nil {
			return tools.Result{}, err
		}
		return named(ctx, b, env, f.String(), f.names)
	})
}

// A finder collects lines up to the limits.
type finder struct {
	lines   []string
	names   []string // of files of which there are lines
	size    int
	full    bool // there are more lines
	skipped int  // files that are no text or too long
}

// searchAll searches the files named until the finder is full.
func (f *finder) searchAll(ctx context.Context, b Source, env tools.Env, re *regexp.Regexp, names []string) error {
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, text, err := readText(ctx, b, env, name)
		switch {
		case hasCode(err, NoEntry): // gone meanwhile
		case hasCode(err, Invalid):
			f.skipped++
		case err != nil:
			return err
		default:
			f.search(re, name, text)
		}
		if f.full {
			break
		}
	}
	return nil
}

// search adds the lines of a text that fit.
func (f *finder) search(re *regexp.Regexp, name, text string) {
	number := 0
	defer func(had int) {
		if len(f.lines) > had {
			f.names = append(f.names, name)
		}
	}(len(f.lines))
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if !re.MatchString(line) {
			continue
		}
		hit := fmt.Sprintf("%s:%d: %s", name, number, cut(line, maxHitLine))
		if len(f.lines) == maxHits || f.size+len(hit)+1 > maxShown {
			f.full = true
			return
		}
		f.lines = append(f.lines, hit)
		f.size += len(hit) + 1
	}
}

func (f *finder) String() string {
	lines := f.lines
	if len(lines) == 0 {
		lines = []string{"(no line fits)"}
	}
	if f.full {
		lines = append(lines, "[there are more; narrow it down]")
	}
	if f.skipped > 0 {
		lines = append(lines, fmt.Sprintf("[left out because they are no text or too long: %s]", counted(f.skipped)))
	}
	return strings.Join(lines, "\n")
}

// counted is a number of files in words.
func counted(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}
