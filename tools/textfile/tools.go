package textfile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot/tools"
)

// Files are where one call works.
type Files interface {
	// Read returns the text of a file that is shown, or edited; what is no text, or too
	// long for that, is an error.
	Read(ctx context.Context, path string, edited bool) (string, error)
	// Write makes or replaces a file and returns what the call did, without a text. from is
	// the file whose text it keeps a part of; empty: none.
	Write(ctx context.Context, path, text, from string) (tools.Result, error)
	// Wrote reports whether this call has written a file and made it exactly this text; false where
	// nothing is known of that. What the call did has no text.
	Wrote(ctx context.Context, path, text string) (tools.Result, bool, error)
	// Delete deletes a file and returns what the call did, without a text. A mark of the file
	// that says its text is untrusted stays.
	Delete(ctx context.Context, path string) (tools.Result, error)
	// Show returns a text that shows words of a file, untrusted if the file is.
	Show(ctx context.Context, path, text string) (tools.Result, error)
}

// A Set says in what the tools of one kind of files differ from those of another.
type Set struct {
	Where    string // what the files lie in, such as "your workspace"; may be empty
	Example  string // of a path
	MaxWrite int    // bytes of a file that is edited
	Spec     func(name, description string, effect tools.Effect) tools.Spec
	// Open finds the files of a call and the one form of a path.
	Open func(ctx context.Context, env tools.Env, path string) (Files, string, error)
	// Argument is the error for an argument that is wrong.
	Argument func(error) error
	// Missing reports whether an error of Read means that there is no such file.
	Missing func(error) bool
}

// Tools are read_file, write_file, edit_file and apply_patch.
func (s Set) Tools() []tools.Tool { return []tools.Tool{s.read(), s.write(), s.edit(), s.patch()} }

// in says where the files lie, after a preposition.
func (s Set) in(preposition string) string {
	if s.Where == "" {
		return ""
	}
	return " " + preposition + " " + s.Where
}

// with is a tool whose schema names the example of the set.
func with[In any](s Set, spec tools.Spec, fn func(context.Context, tools.Env, In) (tools.Result, error)) tools.Tool {
	spec = tools.New(spec, fn).Spec()
	spec.Parameters = bytes.ReplaceAll(spec.Parameters, []byte("EXAMPLE"), []byte(s.Example))
	return tools.New(spec, fn)
}

func (s Set) read() tools.Tool {
	type input struct {
		Path   string `json:"path" jsonschema:"the file, such as EXAMPLE"`
		Offset int    `json:"offset,omitempty" jsonschema:"the first line to show; 1 when absent"`
		Limit  int    `json:"limit,omitempty" jsonschema:"how many lines, at most 2000; 2000 when absent"`
	}
	spec := s.Spec("read_file", "Reads a text file"+s.in("of")+". Lines are shown with their numbers and a tab before them, which are not part of the file.", tools.ReadOnly)
	return with(s, spec, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		files, path, err := s.Open(ctx, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		text, err := files.Read(ctx, path, false)
		if err != nil {
			return tools.Result{}, err
		}
		shown, err := Numbered(path, text, in.Offset, in.Limit)
		if err != nil {
			return tools.Result{}, s.Argument(err)
		}
		return files.Show(ctx, path, shown)
	})
}

func (s Set) write() tools.Tool {
	type input struct {
		Path string `json:"path" jsonschema:"the file, such as EXAMPLE; folders are made as needed"`
		Text string `json:"text" jsonschema:"the whole content, at most 1 MiB"`
	}
	spec := s.Spec("write_file", "Makes a text file"+s.in("in")+", or replaces all of its content.", tools.Idempotent)
	return with(s, spec, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		files, path, err := s.Open(ctx, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		r, err := files.Write(ctx, path, in.Text, "")
		r.Text = fmt.Sprintf("%s is written, %d bytes", path, len(in.Text))
		return r, err
	})
}

// An editing is the input of edit_file.
type editing struct {
	Path string `json:"path" jsonschema:"the file"`
	Old  string `json:"old_text" jsonschema:"the text to replace, exactly as it is in the file, without line numbers; with so much around it that it occurs once"`
	New  string `json:"new_text" jsonschema:"the text to put there; empty to delete"`
	All  bool   `json:"all,omitempty" jsonschema:"true: replaces every occurrence"`
}

// edit is Once: where the new text contains the old one, a second edit would edit the
// first. That the first was made, only files know that keep what a call writes; that it was not,
// mostly the file tells.
func (s Set) edit() tools.Tool {
	spec := s.Spec("edit_file", "Replaces a part of a text file"+s.in("of")+" by another text.", tools.Once)
	spec.Probe = func(ctx context.Context, env tools.Env, args json.RawMessage) (tools.Probed, tools.Result, error) {
		var in editing
		if err := json.Unmarshal(args, &in); err != nil {
			return tools.Unknown, tools.Result{}, err
		}
		files, path, err := s.Open(ctx, env, in.Path)
		if err != nil {
			return tools.Unknown, tools.Result{}, err
		}
		text, err := files.Read(ctx, path, true)
		if err != nil {
			return tools.Unknown, tools.Result{}, err
		}
		r, made, err := files.Wrote(ctx, path, text)
		r.Text = path + " is changed"
		switch {
		case err != nil:
			return tools.Unknown, tools.Result{}, err
		case made:
			return tools.Done, r, nil
		case Untouched(path, text, in.Old, in.New, in.All, s.MaxWrite):
			return tools.NotDone, tools.Result{}, nil
		}
		return tools.Unknown, tools.Result{}, nil
	}
	return with(s, spec, func(ctx context.Context, env tools.Env, in editing) (tools.Result, error) {
		files, path, err := s.Open(ctx, env, in.Path)
		if err != nil {
			return tools.Result{}, err
		}
		text, err := files.Read(ctx, path, true)
		if err != nil {
			return tools.Result{}, err
		}
		text, n, err := Edit(path, text, in.Old, in.New, in.All, s.MaxWrite)
		if err != nil {
			return tools.Result{}, s.Argument(err)
		}
		r, err := files.Write(ctx, path, text, path)
		r.Text = fmt.Sprintf("%d places in %s are changed", n, path)
		if n == 1 {
			r.Text = fmt.Sprintf("1 place in %s is changed", path)
		}
		return r, err
	})
}
