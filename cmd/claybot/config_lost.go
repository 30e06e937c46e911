package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
)

// kept refuses a change of a file that is missing, or has no key, while a running daemon has settings from it: the
// change would be all that is left of them.
func (f *configFile) kept(e *env) error {
	if configs.Sets(f.text) {
		return nil
	}
	c, _, err := f.load(e, f.text)
	if err != nil {
		return nil //nolint:nilerr // the text is broken, and a change mends it or is refused
	}
	cl, err := f.daemon(e, c.DataDir)
	if errors.Is(err, api.ErrNoDaemon) {
		return nil
	}
	var r reloaded
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		err = cl.call(ctx, "POST", "/reload", nil, &r) // which puts nothing in force without a key
	}
	switch {
	case err != nil:
		return fmt.Errorf("nothing was changed: %s sets nothing, and the running daemon does not say whether it has settings from it: %w", f.path, err)
	case r.Failed != "" && r.File != "" && !f.unread(&r):
		return f.lost()
	}
	return nil
}

// lost says that the settings in force are not in the file any more.
func (f *configFile) lost() error {
	const why = "and the running daemon keeps the settings that it has read from it"
	if f.text == nil {
		return configError{fmt.Errorf("nothing was changed: %s is missing, %s; put the file back, or start anew with: claybot config init", f.path, why)}
	}
	return configError{fmt.Errorf("nothing was changed: %s has no key, %s; put its text back, or remove the file and start anew with: claybot config init", f.path, why)}
}

// errEmptied is of an edit that leaves nothing.
var errEmptied = errors.New("the text is empty; remove single settings with: claybot config unset")

// emptied reports whether an edit leaves nothing of a text.
func emptied(before, next []byte) bool {
	return len(bytes.TrimSpace(next)) == 0 && len(bytes.TrimSpace(before)) > 0
}
