package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

// lockWait is how long the daemon waits for a file that another process is changing.
const lockWait = 5 * time.Second

// A configDesk implements web.Configuration by the same steps as claybot config.
type configDesk struct{ *daemon }

var errNoConfig = &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "This daemon has no configuration file that it could change."}

// configProblem returns an error of a change in words for its caller.
func configProblem(key string, err error) error {
	var wrong configError
	var usage usageError
	var past pastError
	var system syscall.Errno
	switch problem := (*web.Problem)(nil); {
	case err == nil:
		return nil
	case errors.As(err, &problem):
		return problem
	case errors.Is(err, errStale):
		return web.ErrConfigStale
	case errors.As(err, &usage) && errors.Is(usage.error, errNoChange):
		return &web.Problem{Status: http.StatusNotFound, Code: "not_found", Message: "There is no such change.", Fix: "List them with GET /config/history."}
	case errors.Is(err, context.DeadlineExceeded):
		return &web.Problem{Status: http.StatusServiceUnavailable, Code: "busy", Wait: 1, Message: "Another process is changing the configuration file."}
	case errors.As(err, &system):
		return &web.Problem{Status: http.StatusConflict, Code: "refused", Message: sentenceOf(err), Fix: "Let claybot read and write the file and its directory, or change the file by hand: claybot reads it again by itself."}
	case errors.As(err, &usage), errors.As(err, &wrong):
		return &web.Problem{Status: http.StatusBadRequest, Code: "values", Message: sentenceOf(err), Fields: map[string]string{"value": sentenceOf(err)}}
	case errors.As(err, &past):
		return &web.Problem{Status: http.StatusConflict, Code: "changed", Message: sentenceOf(err)}
	}
	return fmt.Errorf("change %s: %w", key, err)
}

// sentenceOf is an error as a sentence. One that begins with the name of a file stays as it is.
func sentenceOf(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "nothing"); ok {
		return "Nothing" + rest
	}
	return text
}

// Configuration implements web.Configuration.
func (d configDesk) Configuration(ctx context.Context) (web.ConfigView, error) {
	if d.env == nil {
		return web.ConfigView{}, errNoConfig
	}
	var v web.ConfigView
	f, err := d.env.editable()
	if err == nil {
		v.File, v.Version = f.path, configs.VersionOf(f.text)
	}
	c := *d.config.Load()
	if err == nil {
		var next configs.Config
		if next, _, err = d.env.load(); err == nil {
			c = next
		}
	}
	if err != nil { // the one before is in force
		v.Broken, v.File = err.Error(), cmp.Or(v.File, c.Source.File)
	}
	for _, x := range c.Values() {
		v.Keys = append(v.Keys, configKeyOf(x))
	}
	v.Keys = d.config.markPending(c, v.Keys)
	v.Kinds = entryKinds(web.Here(ctx))
	if f != nil {
		v.Items = configs.Items(f.text)
	}
	return v, nil
}

// entryKinds are the kinds of entries that a form can add. What only the machine of claybot may add or set is
// left out, but for the kinds that a browser there may add, see configFile.here.
func entryKinds(here bool) (all []web.ConfigKind) {
	for _, k := range configs.EntryKinds() {
		if k.Local && !here {
			continue
		}
		kind := web.ConfigKind{Name: k.Name, Group: k.Group, List: k.List}
		for _, x := range k.Fields {
			if x.Local && !(here && (k.Local || k.List)) {
				continue
			}
			kind.Fields = append(kind.Fields, web.ConfigKey{Key: x.Name, Kind: x.Form.Kind, Words: x.Form.Words, Limits: x.Form.Limits, Help: x.Help.Values, Default: x.Help.Default})
			if x.Main {
				kind.Main++
			}
		}
		all = append(all, kind)
	}
	return all
}

// begin locks the file for a change that is based on a version of it.
func (d configDesk) begin(ctx context.Context, by, version string) (*configFile, error) {
	if d.env == nil {
		return nil, errNoConfig
	}
	f, err := d.env.configFile()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if err := f.lock(ctx); err != nil {
		return nil, err
	}
	f.by = by
	if err = f.at(version); d.config.Load().Keyed() && !configs.Sets(f.text) {
		err = f.lost()
	}
	if err != nil {
		f.unlock()
		return nil, err
	}
	return f, nil
}

// ChangeConfig implements web.Configuration.
func (d configDesk) ChangeConfig(ctx context.Context, c web.ConfigEdit) (out web.ConfigChanged, err error) {
	f, err := d.begin(ctx, c.By, c.Version)
	if err != nil {
		return out, configProblem(c.Key, err)
	}
	defer f.unlock()
	c, forget, err := f.entered(c)
	if err != nil {
		return out, configProblem(c.Key, err)
	}
	c.Key = configs.Meant(f.text, c.Key)
	next, undo, err := f.edited(c)
	if err == nil {
		out, err = d.finish(ctx, f, c.Key, next, c.Kind != "" || c.Removes() && configs.WholeEntry(c.Key))
	}
	if !bytes.Equal(next, f.text) { // it is not in the file
		undo()
		forget()
	}
	err = ofEntry(c, configProblem(c.Key, err))
	switch _, _, item := configs.ListOf(c.Key); {
	case c.Removes():
		err = doneHere(err, "unset "+c.Key)
	case item: // else the list as a whole
		err = doneHere(err, "set "+c.Key+" VALUE")
	}
	return out, err
}

// doneHere says by which command of config the machine makes a change that is refused elsewhere.
func doneHere(err error, command string) error {
	var problem *web.Problem
	if errors.As(err, &problem) && problem.Code == "local" {
		problem.Fix = "Run on the machine of claybot: claybot config " + command
	}
	return err
}

// edited returns the text of the file with a change. undo removes the secret that it stores.
func (f *configFile) edited(c web.ConfigEdit) (next []byte, undo func(), err error) {
	undo = func() {}
	key := c.Key
	switch {
	case c.Secret != "":
		secret, err := oneSecret(c.Secret)
		if err != nil {
			return nil, undo, err
		}
		switch {
		case !configs.Known(key):
			return nil, undo, noSuchKey(f.text, key)
		case !configs.TakesSecret(key) || configs.SecretGroup(key):
			return nil, undo, usageError{fmt.Errorf("%s is no secret: set its value", key)}
		}
		reference, undo, err := f.keepSecret(key, secret)
		if err != nil {
			return nil, func() {}, err
		}
		next, err = configs.Set(f.text, key, reference)
		if err != nil {
			err = configError{err}
		}
		return next, undo, err
	case c.Removes():
		next, err = f.without(key)
		return next, undo, err
	default:
		if err := f.referenced(key, *c.Value); err != nil {
			return nil, undo, err
		}
		value := *c.Value
		if c.Text {
			value = configs.Quoted(value)
		}
		change := configs.Set
		if c.Kind != "" {
			change = configs.Add
		}
		next, err = change(f.text, key, value)
	}
	if err != nil {
		err = configError{err}
	}
	return next, undo, err
}

// ConfigHistory implements web.Configuration.
func (d configDesk) ConfigHistory(context.Context) ([]web.ConfigChange, error) {
	if d.env == nil {
		return nil, errNoConfig
	}
	f, err := d.env.editable()
	if err != nil {
		return nil, configProblem("", err)
	}
	all, err := f.history()
	return shownChanges(all, 1), configProblem("", err)
}

// shownChanges are changes with their numbers, from first.
func shownChanges(all []change, first int) []web.ConfigChange {
	list := make([]web.ConfigChange, len(all))
	for i, c := range all {
		list[i] = web.ConfigChange{N: first + i, At: c.At, By: c.By, Key: c.Key, Before: c.Before, After: c.After}
	}
	return list
}

// numbered are changes that were just made to the file, with their numbers in its history; without any where they are
// not recorded there.
func (d configDesk) numbered(f *configFile, made []change, recorded bool) []web.ConfigChange {
	all, err := f.history()
	if err != nil {
		d.log.Warn("failed to read the history of the configuration", "err", err)
	}
	list := shownChanges(made, len(all)-len(made)+1)
	if !recorded || len(all) < len(made) {
		for i := range list {
			list[i].N = 0
		}
	}
	return list
}

// RevertConfig implements web.Configuration.
func (d configDesk) RevertConfig(ctx context.Context, n int, by, version string) (out web.ConfigChanged, err error) {
	f, err := d.begin(ctx, by, version)
	if err != nil {
		return out, configProblem("", err)
	}
	defer f.unlock()
	key, next, err := f.reverted(&n)
	if err == nil {
		out, err = d.finish(ctx, f, key, next, true)
	}
	return out, doneHere(configProblem(key, err), fmt.Sprintf("revert %d", n))
}

// finish checks and writes the next text of a file, and applies it. What only the machine of claybot may change needs
// the Unix socket; a browser on the machine may change more than the network where entry holds: it adds or removes
// an entry, or undoes a change.
func (d configDesk) finish(ctx context.Context, f *configFile, key string, next []byte, entry bool) (out web.ConfigChanged, err error) {
	if out.Version = configs.VersionOf(f.text); bytes.Equal(next, f.text) {
		return out, nil
	}
	switch {
	case web.Local(ctx):
	case entry && web.Here(ctx) && configs.EntryGroup(key):
		err = f.here(d.env, next)
	default:
		err = f.remote(next)
	}
	if err != nil {
		return out, err
	}
	warnings, err := f.check(d.env, []string{key}, next)
	if err != nil {
		return out, err
	}
	if !web.Local(ctx) {
		if c, _, err := f.load(d.env, next); err != nil || d.system.People.EndsRole(admissionOf(c)) {
			return out, cmp.Or[error](err, onMachine(key, "A person has a role, which would end with their access, and cannot be taken over the network"))
		}
	}
	made, recorded, err := f.write([]string{key}, next)
	if err != nil {
		return out, err
	}
	for _, w := range append(warnings, f.keyless(d.env, []string{key})...) {
		out.Warnings = append(out.Warnings, w.String())
	}
	for _, text := range final(made, recorded) {
		out.Warnings = append(out.Warnings, text+".")
	}
	d.log.Info("configuration changed", "key", key, "by", f.by)
	out.Version, out.Wins = configs.VersionOf(next), f.shadows(d.env, []string{key})
	out.Changes = d.numbered(f, made, recorded)
	f.unlock() // a reload may take long
	r, ok := d.askReload(ctx, !configs.Sets(next))
	switch out.Restart = r.Restart; {
	case !ok:
		out.Warnings = append(out.Warnings, "The change is in the file, and takes effect within seconds or with the next start.")
	case r.Failed != "":
		out.Warnings = append(out.Warnings, r.Failed)
	}
	out.Warnings = append(append(out.Warnings, r.Refused...), r.Idle...)
	return out, nil
}
