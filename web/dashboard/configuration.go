package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/web"
)

// configPages serves the configuration file of the daemon. Without one, they are not found.
type configPages struct {
	*pages
	config web.Configuration
}

func (b *configPages) routes() []web.Route {
	return []web.Route{
		b.admin(b.screen("/ui/config", "config", b.list)),
		b.admin(b.part("/ui/config/rows", "config", "rows", b.list)),
		b.admin(b.screen("/ui/config/key", "config-key", b.key)),
		b.admin(b.part("/ui/config/key/now", "config-key", "key-now", b.key)),
		b.admin(b.screen("/ui/config/history", "config-history", b.history)),
		b.admin(b.part("/ui/config/history/now", "config-history", "history-now", b.history)),
		b.act("POST /ui/config/set", web.Admin, b.set),
		b.act("POST /ui/config/unset", web.Admin, b.unset),
		b.act("POST /ui/config/revert", web.Admin, b.revert),
	}
}

// admin makes a route one for administrators: paths and hosts are not for all who read.
func (b *configPages) admin(r web.Route) web.Route {
	r.Scope = web.Admin
	return r
}

// read returns the configuration.
func (b *configPages) read(r *http.Request) (web.ConfigView, error) {
	if b.config == nil {
		return web.ConfigView{}, errPage
	}
	return b.config.Configuration(r.Context())
}

// A configView is the keys in their groups.
type configView struct {
	viewer
	web.ConfigView
	Query, Fresh string
	Groups       []configGroup
	Changed      bool // only keys that are set
	Found        int
}

// A configGroup is the keys of a group of the file.
type configGroup struct {
	Name string
	Open bool
	Keys []configRow
}

// A configRow is a key.
type configRow struct{ web.ConfigKey }

// Set reports whether the key is set anywhere.
func (k configRow) Set() bool { return k.Origin != "default" }

// Shown is the value in words.
func (k configRow) Shown() string {
	switch {
	case k.Refused:
		return configInvalid
	case k.Value == "" && k.Default != "":
		return k.Usual()
	case k.Value == "":
		return "–"
	}
	return k.Value
}

// Waits says that the value waits for a restart, and which one is in force until then; empty if it does not.
func (k configRow) Waits() string {
	if !k.Restart {
		return ""
	}
	return fmt.Sprintf(configWaits, k.InForce)
}

// About is the help of the key.
func (k configRow) About() string { return plainCode(k.Help) }

// Usual is what holds without the key.
func (k configRow) Usual() string { return plainCode(k.Default) }

func (k configRow) URL() string { return "/ui/config/key?" + url.Values{"key": {k.Key}}.Encode() }

func (k configRow) ID() string { return domID(k.Key) }

// plainCode removes the marks of code.
func plainCode(text string) string { return strings.ReplaceAll(text, "`", "") }

// groupOf is the group of a key: of profiles and connectors, that with their name.
func groupOf(key string) string {
	group, rest, deep := strings.Cut(key, ".")
	if name, _, more := strings.Cut(rest, "."); more && (group == "agents" || group == "connectors" || group == "mcp") {
		return group + "." + name
	}
	if !deep {
		return configGeneral
	}
	return group
}

// list shows the keys, or those of ?find= and ?set=.
func (b *configPages) list(r *http.Request) (any, error) {
	c, err := b.read(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	v := configView{viewer: viewerOf(r), ConfigView: c, Query: strings.TrimSpace(q.Get("find")), Changed: q.Get("set") != ""}
	v.Fresh = "/ui/config/rows?" + url.Values{"find": {v.Query}, "set": {q.Get("set")}}.Encode()
	words := strings.Fields(strings.ToLower(v.Query))
	for _, key := range c.Keys {
		row := configRow{key}
		text := strings.ToLower(key.Key + " " + key.Help)
		if v.Changed && !row.Set() && !row.Restart || slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		name := groupOf(key.Key)
		i := slices.IndexFunc(v.Groups, func(g configGroup) bool { return g.Name == name })
		if i < 0 {
			i, v.Groups = len(v.Groups), append(v.Groups, configGroup{Name: name, Open: len(words) > 0 || v.Changed})
		}
		v.Groups[i].Keys = append(v.Groups[i].Keys, row)
		v.Found++
	}
	return v, nil
}

// A configKeyView is one key with its form.
type configKeyView struct {
	viewer
	configRow
	File, Version, Self string
	Changes             []configChange
}

func (v configKeyView) Title() string { return v.Key }

// InFile reports whether the file sets the key.
func (v configKeyView) InFile() bool { return configFileLine.MatchString(v.Origin) }

// Wins is the flag or the variable that sets the key, and wins over the file; empty for none.
func (v configKeyView) Wins() string {
	if !v.Set() || v.InFile() {
		return ""
	}
	return fmt.Sprintf(configWins, v.Origin)
}

// configFileLine is the origin of a key that the file sets.
var configFileLine = lazyregexp.New(`:[0-9]+$`)

// Plain is the value as a field shows it; that of a secret, or with one that is hidden, is empty.
func (v configKeyView) Plain() string {
	if v.Kind == "secret" || v.Refused || strings.Contains(v.Value, configHidden) {
		return ""
	}
	if v.Kind == "text" {
		return v.Text
	}
	return v.Value
}

// keyChanges is how many changes of a key its page lists.
const keyChanges = 20

// key shows ?key= with its form.
func (b *configPages) key(r *http.Request) (any, error) {
	name := strings.TrimSpace(r.URL.Query().Get("key"))
	c, err := b.read(r)
	if err != nil {
		return nil, err
	}
	if parts := strings.SplitN(name, ".", 3); len(parts) == 3 {
		c.Keys = append(c.Keys, unsetIn(c, parts[0]+"."+parts[1])...)
	}
	i := slices.IndexFunc(c.Keys, func(k web.ConfigKey) bool { return k.Key == name })
	if i < 0 {
		return nil, gone(configNoKey, configNoKeyFix)
	}
	v := configKeyView{viewer: viewerOf(r), configRow: configRow{c.Keys[i]}, File: c.File, Version: c.Version}
	v.Self = "/ui/config/key/now?" + url.Values{"key": {name}}.Encode()
	all, err := b.config.ConfigHistory(r.Context())
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	all, _ = cut(slices.DeleteFunc(all, func(c web.ConfigChange) bool { return !within(c.Key, name) }), keyChanges)
	v.Changes = configChanges(all)
	return v, nil
}

// A configHistoryView is the changes of the file, the newest first.
type configHistoryView struct {
	viewer
	Changes []configChange
	More    int
}

func (configHistoryView) Title() string { return configHistoryTitle }

// A configChange is a change with its values in words.
type configChange struct{ web.ConfigChange }

func configChanges(all []web.ConfigChange) []configChange {
	rows := make([]configChange, len(all))
	for i, c := range all {
		rows[i] = configChange{c}
	}
	return rows
}

func orUnset(v *string) string {
	if v == nil {
		return configUnset
	}
	return *v
}

// Was is the value before, and Is the one after.
func (c configChange) Was() string { return orUnset(c.Before) }

// Is is described at Was.
func (c configChange) Is() string { return orUnset(c.After) }

// historyRows is how many changes a page lists.
const historyRows = 100

func (b *configPages) history(r *http.Request) (any, error) {
	if b.config == nil {
		return nil, errPage
	}
	all, err := b.config.ConfigHistory(r.Context())
	slices.Reverse(all)
	v := configHistoryView{viewer: viewerOf(r)}
	all, v.More = cut(all, historyRows)
	v.Changes = configChanges(all)
	return v, err
}

// change makes a change for the user.
func (b *configPages) change(r *http.Request, c web.ConfigEdit) (string, error) {
	if b.config == nil {
		return "", errPage
	}
	c.Key, c.By, c.Version = r.PostForm.Get("key"), web.User(r), r.PostForm.Get("version")
	if c.Version == "" { // the page was made while the file could not be read
		return "", web.ErrConfigStale
	}
	out, err := b.config.ChangeConfig(r.Context(), c)
	var problem *web.Problem
	if errors.As(err, &problem) && problem.Message != "" && problem.Message == problem.Fields["value"] { // the field shows it
		once := *problem
		once.Message = configRefused
		err = &once
	}
	return appliedWords(out), err
}

// appliedWords says what came of a change.
func appliedWords(out web.ConfigChanged) string {
	words := doneConfig
	switch {
	case len(out.Changes) == 0:
		words = doneUnchanged
	case len(out.Restart) > 0:
		words = fmt.Sprintf(doneConfigRestart, strings.Join(out.Restart, ", "))
	case len(out.Warnings) > 0:
		words = doneConfigDoubt
	}
	words = strings.Join(append([]string{words}, out.Warnings...), " ")
	if len(out.Wins) > 0 {
		words += " " + fmt.Sprintf(configWins, strings.Join(out.Wins, ", "))
	}
	return words
}

func (b *configPages) set(r *http.Request) (string, error) {
	value := strings.TrimSpace(r.PostForm.Get("value"))
	if value == "" {
		return "", faulty(map[string]string{"value": configNoValue})
	}
	if r.PostForm.Get("kind") == "secret" && !strings.HasPrefix(value, "env:") && !strings.HasPrefix(value, "file:") {
		return b.change(r, web.ConfigEdit{Secret: value})
	}
	return b.change(r, web.ConfigEdit{Value: &value, Text: r.PostForm.Get("kind") == "text"})
}

func (b *configPages) unset(r *http.Request) (string, error) { return b.change(r, web.ConfigEdit{}) }

func (b *configPages) revert(r *http.Request) (string, error) {
	n, err := strconv.Atoi(r.Form.Get("n"))
	if err != nil || n < 1 {
		return "", errVersion
	}
	if b.config == nil {
		return "", errPage
	}
	out, err := b.config.RevertConfig(r.Context(), n, web.User(r), "")
	return appliedWords(out), err
}
