package textfile

import (
	"cmp"
	"context"
	"fmt"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
)

const patchDescription = `Changes several text files%s at once: all of them, or none. The patch looks like this:
*** Begin Patch
*** Update File: EXAMPLE
@@ a line that stands before the change (optional)
 a line that stays
-a line that goes
+a line that comes
*** Add File: a new file
+each of its lines
*** Delete File: a file
*** End Patch
Give three lines that stay before and after each change, so that it fits one place. After *** Update File, *** Move to: gives the file a new path.`

const (
	patchTime    = 5 * time.Minute // many files in a container
	patchUndoing = 30 * time.Second
)

func (s Set) patch() tools.Tool {
	type input struct {
		Patch string `json:"patch" jsonschema:"the patch, from *** Begin Patch to *** End Patch"`
	}
	spec := s.Spec("apply_patch", strings.ReplaceAll(fmt.Sprintf(patchDescription, s.in("of")), "EXAMPLE", s.Example), tools.Once)
	spec.Whole, spec.Timeout = "patch", patchTime
	return with(s, spec, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		changes, err := ParsePatch(in.Patch)
		if err != nil {
			return tools.Result{}, s.Argument(err)
		}
		plan, err := s.plan(ctx, env, changes)
		if err != nil {
			return tools.Result{}, err
		}
		return s.carryOut(ctx, plan)
	})
}

// A planned step makes one file what it is to be. was is nil where there was none, now where
// there is to be none.
type planned struct {
	files    Files
	path     string
	from     string // the file whose text it keeps a part of
	was, now *string
}

// plan reads the files of a patch and says what becomes of each, deletions last.
func (s Set) plan(ctx context.Context, env tools.Env, changes []Change) (all []planned, err error) {
	var gone []planned
	seen := make(map[string]int)
	for _, c := range changes {
		wrong := func(format string, args ...any) error {
			return s.Argument(fmt.Errorf("field patch: line %d: %w", c.line, fmt.Errorf(format, args...)))
		}
		open := func(name string) (planned, error) {
			files, path, err := s.Open(ctx, env, name)
			if err != nil {
				return planned{}, err
			}
			one := pathpkg.Clean(path)
			if line, twice := seen[one]; twice {
				return planned{}, wrong("%.200q is in the patch twice, first at line %d", path, line)
			}
			seen[one] = c.line
			text, err := files.Read(ctx, path, true)
			if s.Missing(err) {
				return planned{files: files, path: path}, nil
			}
			return planned{files: files, path: path, was: &text}, err
		}
		p, err := open(c.Path)
		switch {
		case err != nil:
			return nil, err
		case c.Kind == addFile && p.was != nil:
			return nil, wrong("%.200q is there already; change it with %s", p.path, updateFile)
		case c.Kind == addFile:
			p.now = &c.Text
			all = append(all, p)
			continue
		case p.was == nil:
			return nil, wrong("there is no %.200q", p.path)
		case c.Kind == deleteFile:
			gone = append(gone, p)
			continue
		}
		text, err := s.changed(c, p)
		if err != nil {
			return nil, err
		}
		if c.To == "" {
			p.now, p.from = &text, p.path
			all = append(all, p)
			continue
		}
		to, err := open(c.To)
		if err != nil {
			return nil, err
		}
		if to.was != nil {
			return nil, wrong("%.200q is there already", to.path)
		}
		to.now, to.from = &text, p.path
		all, gone = append(all, to), append(gone, p)
	}
	return append(all, gone...), nil
}

// changed is the text of a file once a change was made to it.
func (s Set) changed(c Change, p planned) (string, error) {
	text, err := c.Apply(*p.was)
	if err == nil && len(text) > s.MaxWrite {
		err = fmt.Errorf("%.200q would become longer than %d bytes: %w", p.path, s.MaxWrite, ErrTooLong)
	}
	if err != nil {
		return "", s.Argument(err)
	}
	return text, nil
}

// carryOut writes and deletes as planned. If it cannot go on, it gives the files that it changed
// their content from before, and the error names those where that failed as well.
func (s Set) carryOut(ctx context.Context, plan []planned) (tools.Result, error) {
	var all tools.Result
	var lines []string
	for i, p := range plan {
		var r tools.Result
		var err error
		if as, failed := s.is(ctx, p, p.was); i > 0 && (failed != nil || !as) {
			err = cmp.Or(failed, s.Argument(fmt.Errorf("field patch: %.200q changed meanwhile, or has two names in the patch", p.path)))
		} else {
			r, err = p.set(ctx, p.now)
		}
		if err != nil {
			return tools.Result{}, s.undone(ctx, plan[:i+1], err)
		}
		if all.Undo == nil {
			all.Undo = r.Undo
		}
		lines = append(lines, p.String())
	}
	all.What = fmt.Sprintf(texts.DidPatch, Cut(plan[0].path, 200))
	if len(plan) > 1 {
		all.What = fmt.Sprintf(texts.DidPatchMany, strconv.Itoa(len(plan)), Cut(plan[0].path, 200))
	}
	all.Text = "The patch is applied:\n" + Shown(lines, "")
	return all, nil
}

func (p planned) String() string {
	switch {
	case p.was == nil:
		return "A " + p.path
	case p.now == nil:
		return "D " + p.path
	}
	return "M " + p.path
}

func (p planned) set(ctx context.Context, text *string) (tools.Result, error) {
	if text == nil {
		return p.files.Delete(ctx, p.path)
	}
	return p.files.Write(ctx, p.path, *text, p.from)
}

// is reports whether a file has a text; nil: whether it is missing.
func (s Set) is(ctx context.Context, p planned, text *string) (bool, error) {
	now, err := p.files.Read(ctx, p.path, true)
	switch {
	case s.Missing(err):
		return text == nil, nil
	case err != nil:
		return false, err
	}
	return text != nil && *text == now, nil
}

// undone gives files back what was in them before a patch that failed at the last of them, and
// returns what to report. The last one may have been written all the same.
func (s Set) undone(ctx context.Context, done []planned, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchUndoing)
	defer cancel()
	var left []string
	for _, p := range done {
		if !s.back(ctx, p) {
			left = append(left, p.path)
		}
	}
	if len(left) == 0 {
		return fmt.Errorf("%w; no file was changed", failed)
	}
	slices.Sort(left)
	return fmt.Errorf("%w; the patch is applied in part: these may have changed: %s. All other files are as before", failed, strings.Join(left, ", "))
}

// back gives a file its text from before, unless it has that, or another writer's.
func (s Set) back(ctx context.Context, p planned) bool {
	if as, err := s.is(ctx, p, p.was); err == nil && as {
		return true
	}
	if as, err := s.is(ctx, p, p.now); err != nil || !as {
		return false
	}
	p.from = p.path // its mark still stands
	_, err := p.set(ctx, p.was)
	return err == nil
}
