package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

// A pendingKey is a key of which another value is in force than the one that the next start takes.
type pendingKey struct {
	key, inForce, next string
	gone               bool // the file has the key no more
}

// pending are the keys of a setting in which another configuration differs from the one at start. A setting is
// one of restartOnly; there may be none where the keys are the same, and what they refer to differs.
func (s *settings) pending(setting string, now configs.Config) (all []pendingKey) {
	of := func(v configs.Value) bool {
		own, _ := restarts([]string{setting}, []string{v.Key})
		return len(own) > 0
	}
	began := make(map[string]string)
	for _, v := range s.began.Values() {
		if of(v) {
			began[v.Key] = shownValue(v)
		}
	}
	for _, v := range now.Values() {
		if !of(v) {
			continue
		}
		if was, next := cmp.Or(began[v.Key], "-"), shownValue(v); was != next {
			all = append(all, pendingKey{key: v.Key, inForce: was, next: next})
		}
		delete(began, v.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(began)) {
		all = append(all, pendingKey{key: key, inForce: began[key], next: "-", gone: true})
	}
	return all
}

// String says both values.
func (p pendingKey) String() string {
	if p.gone {
		return fmt.Sprintf("%s: %s is in force, and the file has it no more", p.key, p.inForce)
	}
	return fmt.Sprintf("%s: %s is in force, %s in the file", p.key, p.inForce, p.next)
}

// markPending marks the keys that wait for a restart, and adds those that the file has no more.
func (s *settings) markPending(now configs.Config, keys []web.ConfigKey) []web.ConfigKey {
	for _, setting := range s.waiting(now) {
		for _, p := range s.pending(setting, now) {
			i := slices.IndexFunc(keys, func(k web.ConfigKey) bool { return k.Key == p.key })
			if i < 0 {
				i, keys = len(keys), append(keys, configKeyOf(configs.Value{Key: p.key, Origin: configs.OriginDefault}))
			}
			keys[i].Restart, keys[i].InForce = true, p.inForce
		}
	}
	return keys
}

// configKeyOf is a value with the form and the help of its key.
func configKeyOf(x configs.Value) web.ConfigKey {
	form, help := configs.FormOf(x.Key), configs.HelpOf(x.Key)
	return web.ConfigKey{
		Key: x.Key, Value: x.Value, Text: x.Plain(), Origin: x.Origin, Refused: x.Refused,
		Kind: form.Kind, Words: form.Words, Limits: form.Limits, Help: help.Values, Default: help.Default,
	}
}

// A shownKey is a value of which the running daemon may have another one in force: until a restart, or from
// a flag or a variable with which it was started, or without.
type shownKey struct {
	configs.Value
	Restart bool   `json:"restart,omitempty"`
	InForce string `json:"in_force,omitempty"`
	From    string `json:"in_force_from,omitempty"` // where the daemon has it from, if not from where Origin says
}

// note says what is in force in place of the value; empty if the value is.
func (k shownKey) note() string {
	switch {
	case k.Restart:
		return "waits for a restart; until then " + k.InForce + " is in force"
	case k.From != "":
		return "is " + k.InForce + " in the running daemon, which has it from " + k.From
	}
	return ""
}

// next is what to do about a note.
func (k shownKey) next() string {
	if k.Restart {
		return "; " + nextOf("restart-pending")
	}
	return ""
}

// pendingWait bounds how long config show and get wait for the daemon: they show the file without it.
const pendingWait = 5 * time.Second

// withPending says of each value whether a daemon whose file has the same text has another one in force, and
// adds the keys of a group that only the daemon has.
func (e *env) withPending(c configs.Config, group string, all []configs.Value) []shownKey {
	list := make([]shownKey, len(all))
	for i, v := range all {
		list[i].Value = v
	}
	f, err := e.configFile()
	if err != nil {
		return list
	}
	cl, err := f.daemon(e, c.DataDir)
	if err != nil {
		return list
	}
	view, same := f.shownBy(cl)
	if !same {
		return list
	}
	for _, k := range view.Keys {
		i := slices.IndexFunc(list, func(x shownKey) bool { return x.Key == k.Key })
		switch within := group == "" || k.Key == group || strings.HasPrefix(k.Key, group+"."); {
		case i >= 0 && list[i].Value.Value != k.Value: // a variable or a flag sets another one here, or there
			list[i].InForce, list[i].From = cmp.Or(k.Value, "-"), k.Origin
		case !k.Restart:
		case i >= 0:
			list[i].Restart, list[i].InForce = true, k.InForce
		case i < 0 && within && k.Value == "":
			list = append(list, shownKey{Value: configs.Value{Key: k.Key, Origin: k.Origin}, Restart: true, InForce: k.InForce})
		}
	}
	return list
}

// shownBy is the configuration as a daemon shows it, and whether its file has the text of this one.
func (f *configFile) shownBy(cl *client) (view web.ConfigView, same bool) {
	ctx, cancel := context.WithTimeout(context.Background(), pendingWait)
	defer cancel()
	err := cl.call(ctx, "GET", "/config", nil, &view)
	return view, err == nil && view.Version == configs.VersionOf(f.text)
}

// daemon connects to the daemon of a data directory, which is that of the text of the file; or else to one whose file has
// the same text, and which runs until a restart on a directory that the history of the file names.
func (f *configFile) daemon(e *env, dir string) (*client, error) {
	cl, err := dial(dir)
	if !errors.Is(err, api.ErrNoDaemon) {
		return cl, err
	}
	history, _ := f.history() // without one, there is no other directory
	seen := []string{dir}
	for _, c := range slices.Backward(history) {
		if c.Key != "data_dir" {
			continue
		}
		for _, value := range []*string{c.After, c.Before} {
			other := f.dataDir(e, value)
			if other == "" || slices.Contains(seen, other) {
				continue
			}
			seen = append(seen, other)
			if cl, err := dial(other); err == nil {
				if _, same := f.shownBy(cl); same {
					return cl, nil
				}
			}
		}
	}
	return nil, err
}

// dataDir is the data directory with a value for its key in the file; nil: without one.
func (f *configFile) dataDir(e *env, value *string) string {
	text, err := configs.Unset(f.text, "data_dir")
	if err == nil && value != nil {
		text, err = configs.Set(text, "data_dir", *value)
	}
	if err != nil {
		return ""
	}
	c, _, _ := f.load(e, text) // without one, it is no directory
	return c.DataDir
}
