package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/web"
)

type configCmd struct {
	Init    configInitCmd    `cmd:"" eg:"config init" help:"Create a short configuration file to start with."`
	Check   configCheckCmd   `cmd:"" eg:"config check" help:"Check the configuration; exit with 3 if anything in it is not valid. Needs no running daemon."`
	Show    configShowCmd    `cmd:"" eg:"config show agents.default\nconfig show --changed" help:"Show every key with its value and where it comes from."`
	Get     configGetCmd     `cmd:"" eg:"config get model.name" help:"Print the value of a key."`
	Set     configSetCmd     `cmd:"" eg:"config set model.name gpt-5\nconfig set telegram.token < token.txt" help:"Set a key in the configuration file; a running daemon applies it."`
	Unset   configUnsetCmd   `cmd:"" eg:"config unset model.base_url" help:"Remove a key from the configuration file; a running daemon applies it."`
	Edit    configEditCmd    `cmd:"" eg:"config edit" help:"Edit the configuration file in your editor; what is not valid is not applied."`
	History configHistoryCmd `cmd:"" eg:"config history" help:"List the changes that were made with claybot config."`
	Revert  configRevertCmd  `cmd:"" also:"undo rollback" eg:"config revert" help:"Undo a change that was made with claybot config."`
	Schema  configSchemaCmd  `cmd:"" eg:"config schema > claybot.schema.json" help:"Print the JSON Schema of the configuration file, for editors."`
}

type configCheckCmd struct{}

// Run prints everything that is not valid in the file and the environment.
func (configCheckCmd) Run(e *env) error {
	if loss := e.loss(); loss != "" {
		return configError{errors.New(loss)}
	}
	c, warnings, err := e.load()
	if err != nil {
		return err
	}
	source := c.Source.File
	if source == "" {
		source = "no configuration file"
	}
	text, n := warningLines(warnings), len(warnings)
	for _, err := range []error{c.CheckLocal(), guarded(c)} {
		if err != nil {
			text, n = text+err.Error()+"\n", n+1
		}
	}
	for _, doubt := range doubtful(c) {
		text, n = text+doubt+"\n", n+1
	}
	if n == 0 {
		return e.text("The configuration is valid: " + source + ".\n")
	}
	if err := e.text(text); err != nil {
		return err
	}
	return configError{errors.New(count(n, "problem") + " in the configuration: " + source)}
}

// guarded returns why a daemon with this configuration would not serve the page, see web.Guarded.
func guarded(c configs.Config) error {
	return web.Guarded(c.HTTP.Addr, c.HTTP.Guard.TLSCert != "" || c.HTTP.Guard.Insecure || len(c.HTTP.Guard.Proxies) > 0)
}

// warningLines are warnings with the next steps, a line each.
func warningLines(all []configs.Warning) string {
	var b strings.Builder
	for _, w := range all {
		b.WriteString(withNext(w.String(), w) + "\n")
	}
	return b.String()
}

// withNext is a text about a warning with the next step, if it has one.
func withNext(text string, w configs.Warning) string {
	if w.Next != "" {
		text += "; next: " + w.Next
	}
	return text
}

type configShowCmd struct {
	Key     string `arg:"" optional:"" values:"config keys" help:"Show only this key or group, such as agents.default."`
	Changed bool   `help:"Leave out the defaults."`
	JSON    bool   `name:"json" help:"Print as JSON."`
}

// Run shows the configuration with which a daemon would start here.
func (c configShowCmd) Run(e *env) error {
	all, err := e.values(c.Key)
	if err != nil {
		return err
	}
	if loss := e.loss(); loss != "" {
		fmt.Fprintf(e.err, "claybot: warning: %s\n", loss)
	}
	waits := func(v shownKey) bool { return v.Restart }
	noted := func(v shownKey) bool { return v.note() != "" }
	if c.Changed {
		all = slices.DeleteFunc(all, func(v shownKey) bool { return v.Origin == configs.OriginDefault && !noted(v) })
	}
	const none = "Nothing is set: all values are defaults.\n"
	switch {
	case c.JSON:
		return e.printJSON(all)
	case !slices.ContainsFunc(all, noted):
		return e.list("KEY,VALUE,FROM", none, each(all, func(v shownKey) []string {
			return []string{v.Key, oneLine(shownValue(v.Value)), v.Origin}
		}))
	}
	err = e.list("KEY,VALUE,FROM,NOTE", none, each(all, func(v shownKey) []string {
		return []string{v.Key, oneLine(shownValue(v.Value)), v.Origin, oneLine(v.note())}
	}))
	if slices.ContainsFunc(all, waits) {
		fmt.Fprintln(e.err, "next: "+nextOf("restart-pending"))
	}
	return err
}

func shownValue(v configs.Value) string {
	switch {
	case v.Refused:
		return "(not valid, see: claybot config check)"
	case v.Value == "":
		return "-"
	}
	return v.Value
}

// values returns the keys of the configuration, or those of a group, as a start would have them in force.
func (e *env) values(key string) ([]shownKey, error) {
	c, _, err := e.load()
	switch {
	case err != nil:
		return nil, err
	case key == "":
		return e.withPending(c, "", c.Values()), nil
	}
	all := e.withPending(c, key, c.Value(key))
	if len(all) == 0 {
		f, err := e.configFile()
		if err != nil {
			return nil, err
		}
		return nil, noSuchKey(f.text, key)
	}
	return all, nil
}

// noSuchKey is of a key that a file with a text cannot have, or of an entry that it has not.
func noSuchKey(text []byte, key string) error {
	if item := configs.ItemAround(text, key); item != "" {
		return usageError{fmt.Errorf("there is no key %q that changes alone: change the entry %s as a whole", key, item)}
	}
	why := fmt.Sprintf("there is no key %q; claybot config show lists them", configs.ShownKey(key))
	if near := configs.NearestKey(text, key); near != "" {
		why += "; did you mean " + near + "?"
	}
	return usageError{errors.New(why)}
}

type configGetCmd struct {
	Key string `arg:"" values:"config keys" help:"Key, such as model.name."`
}

// Run prints the value alone, for scripts.
func (c configGetCmd) Run(e *env) error {
	all, err := e.values(c.Key)
	if i := slices.IndexFunc(all, func(v shownKey) bool { return v.Key == c.Key }); i > 0 {
		all = all[i:] // a group that is a value as well, such as deep: true
	}
	switch {
	case err != nil:
		return err
	case all[0].Key != c.Key:
		return usageError{fmt.Errorf("%s is a group of keys; show it with: claybot config show %s", c.Key, c.Key)}
	case all[0].Refused:
		return configError{fmt.Errorf("the value of %s is not valid; run: claybot config check", c.Key)}
	}
	if note := all[0].note(); note != "" {
		fmt.Fprintf(e.err, "%s %s%s\n", c.Key, plain(note), all[0].next())
	}
	return e.text(all[0].Plain() + "\n")
}

type configSetCmd struct {
	Key   string  `arg:"" values:"config keys" help:"Key, such as model.name."`
	Value *string `arg:"" optional:"" help:"Value, as in the file. Without one, a secret is read from the terminal or from standard input and stored in a file that only you can read."`
}

// Run sets a key where its new value is valid.
func (c configSetCmd) Run(e *env) error {
	f, err := e.configFile()
	if err != nil {
		return err
	}
	c.Key = configs.Meant(f.text, c.Key)
	value, secret, err := c.value(e, f)
	if err != nil {
		return err
	}
	changed, err := f.put(e, c.Key, value, secret)
	switch {
	case err != nil:
		return err
	case !changed:
		return e.text(fmt.Sprintf("%s is set to that already.\n", c.Key))
	}
	fmt.Fprint(e.err, warningLines(f.keyless(e, []string{c.Key})))
	return f.reload(e, c.Key)
}

// put sets a key to a value, or to the reference to a secret that it stores, where the new value is
// valid. It keeps the file locked, see unlock.
func (f *configFile) put(e *env, key, value, secret string) (changed bool, err error) {
	if err := f.lock(context.Background()); err != nil {
		return false, err
	}
	undo := func() {}
	if secret != "" {
		if value, undo, err = f.keepSecret(key, secret); err != nil {
			return false, err
		}
	}
	next, err := configs.Set(f.text, key, value)
	switch {
	case err != nil:
		err = configError{fmt.Errorf("%s: %w", f.path, err)}
	case bytes.Equal(next, f.text):
		return false, nil
	default:
		err = f.change(e, []string{key}, next)
	}
	if !bytes.Equal(next, f.text) { // it is not in the file
		undo()
	}
	return err == nil, err
}

type configUnsetCmd struct {
	Key string `arg:"" values:"config keys" help:"Key, such as model.name."`
}

// Run removes a key.
func (c configUnsetCmd) Run(e *env) error {
	f, err := e.configFile()
	if err == nil {
		err = f.lock(context.Background())
	}
	if err != nil {
		return err
	}
	defer f.unlock()
	next, err := f.without(c.Key)
	if err != nil {
		return err
	}
	if bytes.Equal(next, f.text) {
		return e.text(fmt.Sprintf("%s is not set in %s.\n", c.Key, f.path))
	}
	return f.apply(e, []string{c.Key}, next)
}

// apply changes the file, and has a running daemon read it.
func (f *configFile) apply(e *env, keys []string, next []byte) error {
	if err := f.change(e, keys, next); err != nil {
		return err
	}
	fmt.Fprint(e.err, warningLines(f.keyless(e, keys)))
	return f.reload(e, keys...)
}

// keyless warns of a model without a key, where keys of the model were changed.
func (f *configFile) keyless(e *env, keys []string) (all []configs.Warning) {
	c, _, err := f.load(e, f.text)
	if err == nil && c.Model.Keyless() && slices.ContainsFunc(keys, configs.Warning{Key: "model"}.Concerns) {
		all = append(all, configs.Warning{Key: "model", Text: noKey(c.Model), Next: setKey})
	}
	return all
}

// change checks the next text of the file, writes it, and says so.
func (f *configFile) change(e *env, keys []string, next []byte) error {
	warnings, err := f.check(e, keys, next)
	if err != nil {
		return err
	}
	if err := f.kept(e); err != nil {
		return err
	}
	fmt.Fprint(e.err, warningLines(warnings))
	made, recorded, err := f.write(keys, next)
	if err != nil {
		return err
	}
	for _, text := range final(made, recorded) {
		fmt.Fprintf(e.err, "claybot: warning: %s\n", text)
	}
	var b strings.Builder
	for _, c := range made {
		fmt.Fprintf(&b, "%s: %s: %s, was %s\n", f.path, c.Key, orNone(c.After), orNone(c.Before))
	}
	for _, origin := range f.shadows(e, keys) {
		b.WriteString(origin + " is set here as well, and wins over the file.\n")
	}
	if err := e.text(b.String()); err != nil {
		return err
	}
	return nil
}

// check refuses a change of keys that makes something not valid, and returns what else it makes
// doubtful.
func (f *configFile) check(e *env, keys []string, next []byte) ([]configs.Warning, error) {
	was := make(map[string]int)
	open := false
	before, warnings, err := f.load(e, f.text)
	known := err == nil
	if known {
		open = guarded(before) != nil
		for _, w := range warnings {
			was[unplaced(w)]++
		}
	}
	c, warnings, err := f.load(e, next)
	switch {
	case errors.Is(err, configs.ErrLarge):
		return nil, configError{fmt.Errorf("nothing was changed: with this change, %w, and claybot would not read it: keep long prompts in files, see agents.default.prompt_dir", configs.ErrLarge)}
	case err != nil:
		return nil, err
	}
	fresh := slices.DeleteFunc(warnings, func(w configs.Warning) bool {
		was[unplaced(w)]--
		return was[unplaced(w)] >= 0
	})
	refused := slices.ContainsFunc(fresh, func(w configs.Warning) bool {
		return w.Off || w.File != "" && !w.Advice() && slices.ContainsFunc(keys, func(key string) bool { return w.Concerns(key) })
	})
	switch {
	case refused:
		return fresh, configError{&configRefusal{fresh}}
	case c.CheckLocal() != nil:
		return fresh, configError{fmt.Errorf("nothing was changed: %w", c.CheckLocal())}
	case guarded(c) != nil && !open:
		return fresh, configError{fmt.Errorf("nothing was changed: %w", guarded(c))}
	case known:
		fresh = append(fresh, leavesBehind(before, c)...)
	}
	return fresh, nil
}

// A configRefusal is of a change that makes settings not valid.
type configRefusal struct{ warnings []configs.Warning }

func (r *configRefusal) Error() string {
	all := make([]string, len(r.warnings))
	for i, w := range r.warnings {
		all[i] = withNext(w.Refusal(), w)
	}
	return "nothing was changed: " + strings.Join(all, "\n")
}

// shadows are the flags and variables that set any of the keys as well.
func (f *configFile) shadows(e *env, keys []string) []string {
	c, _, err := e.load()
	if err != nil {
		return nil
	}
	return shadows(c, keys)
}

// shadows are the flags and variables from which a configuration has any of the keys.
func shadows(c configs.Config, keys []string) (origins []string) {
	for _, key := range keys {
		for _, v := range c.Value(key) {
			if v.Above && !slices.Contains(origins, v.Origin) {
				origins = append(origins, v.Origin)
			}
		}
	}
	return origins
}

// reload has a running daemon read the file, and says what came of it, first of the keys that are changed.
func (f *configFile) reload(e *env, keys ...string) error {
	r, err := f.reread(e, "", nil, keys...)
	if err != nil {
		return err
	}
	text, err := f.outcome(r, keys...)
	if err != nil {
		return err
	}
	return e.text(text)
}

// reread has a running daemon read the file, and compare its settings with those of a caller, if any.
// again names a connector that it starts anew, if any. It returns what came of it, and what the daemon has
// the keys from in place of the file; nil if no daemon runs.
func (f *configFile) reread(e *env, again string, with *comparison, keys ...string) (*reloaded, error) {
	c, _, err := e.load()
	if err != nil {
		return nil, err
	}
	cl, err := f.daemon(e, c.DataDir)
	if errors.Is(err, api.ErrNoDaemon) {
		return nil, nil
	}
	query := url.Values{"key": keys}
	if !configs.Sets(f.text) { // which is what was asked for
		query.Set("empty", "1")
	}
	if again != "" {
		query.Set("again", again)
	}
	var body any
	if with != nil {
		body = with
	}
	r := new(reloaded)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		err = cl.call(ctx, "POST", "/reload?"+query.Encode(), body, r)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file is changed, but the daemon has not read it: %w", err)
	case r.Failed != "":
		return nil, configError{fmt.Errorf("the file is changed, but the daemon could not read it: %s", r.Failed)}
	}
	return r, nil
}

// outcome says what came of a reload, first of the keys that are changed, if they are known; r is nil if
// no daemon runs.
func (f *configFile) outcome(r *reloaded, keys ...string) (string, error) {
	switch {
	case r == nil:
		return "It takes effect when claybot starts.\n", nil
	case f.unread(r) && r.File == "":
		return "The running daemon reads no file, so restart it: claybot stop, and claybot serve.\n", nil
	case f.unread(r):
		return "The running daemon reads another file, " + r.File + ".\n", nil
	case len(r.Refused) > 0:
		text := "the file is changed, but " + strings.Join(r.Refused, "; ")
		if len(r.Restart) > 0 {
			text += "; these need a restart: " + strings.Join(r.Restart, ", ")
		}
		return "", configError{errors.New(text)}
	}
	text := "The running daemon has applied it."
	if len(r.Shadows) > 0 {
		text = "The running daemon has read the file, but it was started with " + strings.Join(r.Shadows, ", ") +
			", which wins over the file: its old value stays in force. Remove that there, and start the daemon anew."
	}
	own, earlier := restarts(r.Restart, keys)
	if len(own) > 0 {
		text = "The running daemon has read it. These need a restart: " + strings.Join(own, ", ")
	}
	if len(earlier) > 0 {
		text += "\nChanged earlier, and waiting for a restart: " + strings.Join(earlier, ", ")
	}
	return strings.Join(append([]string{text}, r.Idle...), "\n") + "\n", nil
}

// restarts parts the settings that need a restart into those of keys, and the others. Without keys, all
// are of them.
func restarts(all, keys []string) (own, earlier []string) {
	for _, x := range all {
		if len(keys) == 0 || slices.ContainsFunc(keys, func(key string) bool {
			public := x == "http_hosts" && key == "http.public_url" // its host is one of them
			return public || key == x || strings.HasPrefix(key, x+".") || strings.HasPrefix(x, key+".") || strings.HasPrefix(key, x+"[") || strings.HasSuffix(key, "."+x)
		}) {
			own = append(own, x)
		} else {
			earlier = append(earlier, x)
		}
	}
	return own, earlier
}

// unread reports whether a daemon has read another file, or none.
func (f *configFile) unread(r *reloaded) bool {
	own, _ := filepath.Abs(f.path) // else the two differ
	if real, err := filepath.EvalSymlinks(r.File); err == nil && r.File != "" {
		r.File = real
	}
	return r.File != own && (r.File != "" || f.text != nil)
}
