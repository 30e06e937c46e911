package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/claybot/claybot/configs"
)

type configEditCmd struct {
	Yes bool `help:"Apply without asking."`
}

// Run opens a copy of the file in the editor, until it is applied or given up. The copy stays
// unless it is applied.
func (c configEditCmd) Run(e *env) error {
	f, err := e.editable()
	if err != nil {
		return err
	}
	began := configs.VersionOf(f.text)
	text := f.text
	if text == nil {
		text = []byte(starterFile)
	}
	dir, err := os.MkdirTemp("", "claybot-config-")
	if err != nil {
		return err
	}
	draft := filepath.Join(dir, filepath.Base(f.path))
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	keep := func(err error) error { return fmt.Errorf("%w; your copy is %s", err, draft) }
	answers := bufio.NewReader(e.in)
	for {
		if err := e.openEditor(draft); err != nil {
			return keep(err)
		}
		next, err := os.ReadFile(draft)
		if err != nil {
			return keep(err)
		}
		if bytes.Equal(next, f.text) {
			return errors.Join(e.text("Nothing was changed.\n"), os.RemoveAll(dir))
		}
		keys, again, err := c.review(e, f, next, answers)
		switch {
		case err != nil:
			return keep(err)
		case again:
			continue
		}
		if err := f.lock(context.Background()); err != nil {
			return keep(err)
		}
		if err := f.at(began); err != nil {
			return keep(err)
		}
		err = f.apply(e, keys, next)
		if !bytes.Equal(f.text, next) { // it was not written
			return keep(err)
		}
		return errors.Join(err, os.RemoveAll(dir))
	}
}

// editable is configFile also for a file that cannot be read as a configuration: to mend it.
func (e *env) editable() (*configFile, error) {
	f, err := e.configFile()
	if f != nil && f.text != nil {
		return f, nil
	}
	return f, err
}

// openEditor runs the editor of the user on a file.
func (e *env) openEditor(path string) error {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if v, ok := e.lookup(name); ok && strings.TrimSpace(v) != "" {
			editor = v
		}
	}
	words := append(strings.Fields(editor), path)
	cmd := exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // the user's own editor, which they end
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, e.out, e.err
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the editor %q failed: %w; set VISUAL or EDITOR", editor, err)
	}
	return nil
}

// errGivenUp is of an edit that is not applied.
var errGivenUp = errors.New("nothing was changed")

// review shows what is different and what is not valid in the next text, and asks what to do. It
// returns the keys that change, or that the text is to be edited again.
func (c configEditCmd) review(e *env, f *configFile, next []byte, answers *bufio.Reader) (keys []string, again bool, err error) {
	if err := e.text(shownDiff(f.text, next)); err != nil {
		return nil, false, err
	}
	keys, faulty := changedKeys(f.text, next)
	switch {
	case emptied(f.text, next):
		faulty = errEmptied
	case faulty == nil:
		_, faulty = f.check(e, keys, next)
	}
	if faulty != nil {
		fmt.Fprintf(e.err, "claybot: %s\n", plain(faultOf(faulty)))
		answer, err := e.choice(answers, "Edit again? [Y/n] ", c.Yes)
		if err != nil || answer == "n" {
			return nil, false, errors.Join(configError{errGivenUp}, err)
		}
		return nil, true, nil
	}
	if c.Yes {
		return keys, false, nil
	}
	answer, err := e.choice(answers, "Apply? [Y/n/e(dit again)] ", false)
	switch {
	case err != nil || answer == "n":
		return nil, false, errors.Join(errGivenUp, err)
	case answer == "e":
		return nil, true, nil
	}
	return keys, false, nil
}

// faultOf says what is not valid in a text that is edited again or given up, with its lines.
func faultOf(err error) string {
	if refused, ok := errors.AsType[*configRefusal](err); ok {
		return strings.TrimSuffix(warningLines(refused.warnings), "\n")
	}
	return strings.TrimPrefix(err.Error(), "nothing was changed: ")
}

// changedKeys is configs.Changed, with entries of lists, for a file that may be broken before: then all its keys are new.
func changedKeys(before, next []byte) ([]string, error) {
	keys, err := configs.Changed(before, next)
	if err == nil {
		return configs.Parted(before, next, keys), nil
	}
	if keys, err = configs.Changed(nil, next); err != nil {
		return nil, configError{err}
	}
	return keys, nil
}

// choice asks a question and returns the first letter of the answer; y for none. The end of the
// input, and silent, are no.
func (e *env) choice(in *bufio.Reader, question string, silent bool) (string, error) {
	if silent {
		return "n", nil
	}
	fmt.Fprint(e.err, question)
	line, err := in.ReadString('\n')
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(e.err)
		return "n", nil
	}
	line = strings.ToLower(strings.TrimSpace(line))
	if line == "" {
		line = "y"
	}
	return line[:1], err
}

// shownDiff is the difference of two texts of the file with their lines, without secrets.
func shownDiff(before, after []byte) string {
	lines := func(text []byte) []string { return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") }
	var b strings.Builder
	for _, l := range configs.Diff(lines(before), lines(after), 2) {
		if l.Mark == 0 {
			b.WriteString("...\n")
			continue
		}
		b.WriteString(string(l.Mark) + " " + configs.MaskLine(l.Text) + "\n")
	}
	return b.String()
}
