package documents

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// Limits of what one call shows. A result above 32 KiB would be cut in the
// middle; the rest is room for what is said around it.
const (
	maxShown = 31 << 10
	maxLines = 2000
	maxLine  = 2000 // bytes of one line
)

// spec is what all tools of this package have in common.
func spec(name, description string, effect tools.Effect) tools.Spec {
	return tools.Spec{
		Tool: llm.Tool{Name: name, Description: description}, Effect: effect,
		Undoes: effect != tools.ReadOnly, Scopes: []string{"files"},
	}
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
		if in.Offset < 0 {
			return tools.Result{}, fail(Invalid, "field offset: %d, want 1 or more", in.Offset)
		}
		if in.Limit < 0 || in.Limit > maxLines {
			return tools.Result{}, fail(Invalid, "field limit: %d, want 1 to %d", in.Limit, maxLines)
		}
		files, text, err := readText(ctx, b, env, path)
		if err != nil {
			return tools.Result{}, err
		}
		shown, err := numbered(path, text, max(in.Offset, 1), in.Limit)
		if err != nil {
			return tools.Result{}, err
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
	if !isText(text) {
		return nil, "", fail(Invalid, "%.200q is not text", path)
	}
	return files, text, nil
}

func isText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// numbered shows limit lines of a text from line first on, as many as there is
// room for, and says what it left out.
func numbered(path, text string, first, limit int) (string, error) {
	if text == "" {
		return "(the file is empty)", nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if first > len(lines) {
		return "", fail(Invalid, "field offset: %d, but %.200q has %d lines", first, path, len(lines))
	}
	if limit == 0 {
		limit = maxLines
	}
	var b strings.Builder
	last := first - 1
	for last < len(lines) && last-first+1 < limit {
		l := fmt.Sprintf("%6d\t%s\n", last+1, cut(lines[last], maxLine))
		if b.Len()+len(l) > maxShown {
			break
		}
		b.WriteString(l)
		last++
	}
	if last < len(lines) {
		fmt.Fprintf(&b, "[lines %d to %d of %d; go on with offset %d]", first, last, len(lines), last+1)
	}
	return b.String(), nil
}

// cut shortens a line and says by how much.
func cut(line string, limit int) string {
	line = strings.TrimSuffix(line, "\r")
	if len(line) <= limit {
		return line
	}
	end := limit
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return fmt.Sprintf("%s [… %d more bytes]", line[:end], len(line)-end)
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
	if !isText(text) {
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
		text, n, err := edit(path, text, in.Old, in.New, in.All)
		if err != nil {
			return tools.Result{}, err
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

// edit replaces from by to in a text, and returns in how many places.
func edit(path, text, from, to string, all bool) (string, int, error) {
	if from == "" {
		return "", 0, fail(Invalid, "field old_text: must not be empty")
	}
	if from == to {
		return "", 0, fail(Invalid, "field new_text: is the same as old_text")
	}
	if !strings.Contains(text, from) && strings.Contains(text, "\r\n") && !strings.Contains(from, "\r") {
		// Results show no carriage returns, so a model cannot know of them.
		from, to = strings.ReplaceAll(from, "\n", "\r\n"), strings.ReplaceAll(to, "\n", "\r\n")
	}
	first := strings.Index(text, from)
	if first < 0 {
		return "", 0, fail(Invalid, "field old_text: %.200q has no such text", path)
	}
	if !all {
		if strings.LastIndex(text, from) != first {
			return "", 0, fail(Invalid, "field old_text: occurs more than once in %.200q; give more of the text around it, or all: true", path)
		}
		return text[:first] + to + text[first+len(from):], 1, nil
	}
	n := strings.Count(text, from)
	if len(text)+n*(len(to)-len(from)) > MaxFile { // before it is made
		return "", 0, fail(OverQuota, "%.200q would become longer than %d bytes", path, MaxFile)
	}
	return strings.ReplaceAll(text, from, to), n, nil
}
