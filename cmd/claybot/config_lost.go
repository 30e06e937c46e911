package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/overview"
)

// kept refuses a change of a file that is missing, or has no key, while a running daemon has settings from it: the
// change would be all that is left of them.
func (f *configFile) kept(e *env) error {
	held, err := f.held(e)
	switch {
	case err != nil:
		return fmt.Errorf("nothing was changed: %s sets nothing, and the running daemon does not say whether it has settings from it: %w", f.path, err)
	case held:
		return f.lost()
	}
	return nil
}

// held reports whether a running daemon has settings from the file, which is missing or has no key.
func (f *configFile) held(e *env) (bool, error) {
	if configs.Sets(f.text) {
		return false, nil
	}
	c, _, err := f.load(e, f.text)
	if err != nil {
		return false, nil //nolint:nilerr // the text is broken, and a change mends it or is refused
	}
	cl, err := f.daemon(e, c.DataDir)
	if errors.Is(err, api.ErrNoDaemon) {
		return false, nil
	}
	var r reloaded
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		err = cl.call(ctx, "POST", "/reload", nil, &r) // which puts nothing in force without a key
	}
	return err == nil && r.Failed != "" && r.File != "" && !f.unread(&r), err
}

// loss says that a running daemon keeps the settings of a file that is missing or has no key; empty if none does.
func (e *env) loss() string {
	f, err := e.configFile()
	if err != nil {
		return ""
	}
	if held, err := f.held(e); err != nil || !held {
		return ""
	}
	return f.loss()
}

// daemonNext is the next step of a code that a running daemon reports, which still has the settings of a file that cannot be
// read; empty if none does.
func (e *env) daemonNext(code string) string {
	f, err := e.configFile()
	if err != nil {
		return ""
	}
	c, _, err := f.load(e, f.text)
	if err != nil {
		return ""
	}
	cl, err := f.daemon(e, c.DataDir)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), pendingWait)
	defer cancel()
	var st overview.Status
	_ = cl.call(ctx, "GET", "/status", nil, &st) // without an answer, it reports nothing
	for _, x := range st.Findings {
		if x.Code == code {
			return x.Next
		}
	}
	return ""
}

// putBack is the next step while a running daemon keeps the settings of a file that is missing.
const putBack = "put the file back, or stop claybot and start anew with: claybot config init"

// lost refuses a change, as the settings in force are not in the file any more.
func (f *configFile) lost() error {
	return configError{fmt.Errorf("nothing was changed: %s", f.loss())}
}

// loss says that the settings in force are not in the file any more, and what to do.
func (f *configFile) loss() string {
	is, next := "is missing", putBack
	if f.text != nil {
		is, next = "has no key", "put its text back, or stop claybot, remove the file and start anew with: claybot config init"
	}
	return fmt.Sprintf("%s %s, and the running daemon keeps the settings that it has read from it; %s", f.path, is, next)
}

// errEmptied is of an edit that leaves nothing.
var errEmptied = errors.New("the text is empty; remove single settings with: claybot config unset")

// emptied reports whether an edit leaves nothing of a text.
func emptied(before, next []byte) bool {
	return len(bytes.TrimSpace(next)) == 0 && len(bytes.TrimSpace(before)) > 0
}
