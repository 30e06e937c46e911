package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/storage/postgres"
)

// A finding is one of the doctor, with what mends it, if that is safe and can be undone.
type finding struct {
	postgres.Finding
	mend func(context.Context) (done string, err error)
}

// A mended is what claybot doctor --fix did about a finding.
type mended struct {
	What string `json:"what"`
	Code string `json:"code"` // of the finding
	Text string `json:"text"`
}

// offer says how to mend the newest finding. do returns what it did, with what was before.
func (d *doctor) offer(do func(context.Context) (done string, err error)) bool {
	f := &d.all[len(d.all)-1]
	command := "claybot doctor --fix"
	if d.online {
		command = "claybot doctor --online --fix"
	}
	f.mend = do
	f.Next += "; or run: " + command
	return true
}

// mend mends what can be mended, the newest finding first: a daemon reads a changed configuration only from
// a data directory that is safe. It returns what it did, and what it could not do.
func (d *doctor) mend(ctx context.Context) (done []mended, failed []finding) {
	for _, f := range slices.Backward(d.all) {
		if f.mend == nil {
			continue
		}
		limited, cancel := context.WithTimeout(ctx, platformTime)
		text, err := f.mend(limited)
		cancel()
		if err != nil {
			f.Code, f.Text = "fix-failed", d.hide.Replace("cannot mend "+f.Code+": "+err.Error())
			failed = append(failed, f)
			continue
		}
		done = append(done, mended{f.What, f.Code, d.hide.Replace(text)})
	}
	return done, failed
}

// closing returns what closes a directory to other users.
func closing(dir string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		info, err := os.Lstat(dir)
		if err == nil {
			err = os.Chmod(dir, 0o700) //nolint:gosec // a directory
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("set the mode of %s to 0700; it was %04o", dir, info.Mode().Perm()), nil
	}
}

// unhooking returns what removes the webhook of a bot that polls.
func unhooking(c *telegram.Connector, host string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		if err := c.RemoveWebhook(ctx); err != nil {
			return "", err
		}
		return "removed the webhook that led to " + host + "; Telegram keeps the updates that wait", nil
	}
}

// renaming returns what renames a mistyped key of the configuration file; nil where a person must decide.
func (e *env) renaming(w configs.Warning) func(context.Context) (string, error) {
	f, err := e.configFile()
	if err != nil {
		return nil
	}
	if _, ok := w.Rename(f.text); !ok || w.File != f.named && w.File != f.path {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		if err := f.lock(ctx); err != nil {
			return "", err
		}
		defer f.unlock()
		next, ok := w.Rename(f.text)
		if !ok || bytes.Equal(next, f.text) {
			return "", errStale
		}
		quiet := *e
		quiet.out, quiet.err = io.Discard, io.Discard
		if err := f.apply(&quiet, []string{w.Near}, next); err != nil {
			return "", err
		}
		return fmt.Sprintf("%s:%d: renamed %s to %s; claybot config revert unsets it again", w.File, w.Line, w.Key, w.Near), nil
	}
}
