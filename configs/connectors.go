package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/platforms"
)

// Connectors are the settings of the connectors that have instances. The groups telegram,
// slack and discord are the instances of those names.
type Connectors struct {
	Telegram Telegram `key:"telegram" class:"destination" off:"the connector telegram is off"`
	Slack    Slack    `key:"slack" class:"destination" off:"the connector slack is off"`
	Discord  Discord  `key:"discord" class:"destination" off:"the connector discord is off"`
	// Named are the instances of the group connectors, in the order of the file.
	Named []Instance `key:"connectors" class:"destination" kind:"instances" bad:"zero" off:"the connectors of the group are off"`
}

// An Instance is a connector with its own name, accounts and settings.
type Instance struct {
	Name     string
	Settings ConnectorSettings

	at place
}

// ConnectorSettings are the settings of an instance. Each type of connector has its own.
type ConnectorSettings interface {
	// Type is the name of the platform.
	Type() string
	// Wanted reports whether the connector is to run. A secret that was named but could
	// not be read counts, so that the connector can say so, and so does a setting that
	// switches it off.
	Wanted() bool
	// Off says why the connector is off; empty when the settings hold.
	Off() string
	// Credentials are its tokens and keys, those that are missing included.
	Credentials() []Credential
	// Accounts name what only one instance may use.
	Accounts() []string
}

// Same reports whether two settings are the same, the values of secrets included, so that a
// connector made from one goes on with the other.
func Same(a, b ConnectorSettings) bool { return reflect.DeepEqual(a, b) }

// A Credential is a token or a key of a connector.
type Credential struct {
	Key      string // within the group
	Variable string // of the environment that sets it in the group of the platform; empty for none
	Value    Secret
	Form     *lazyregexp.Regexp // nil: any
	Where    string             // to get it
}

// Names are how the credentials of the instance are set; see NameOf.
func (i Instance) Names() (names []string) {
	for _, c := range i.Settings.Credentials() {
		names = append(names, i.NameOf(c.Key, c.Variable, c.Value))
	}
	return names
}

// NameOf is how a value of the instance is set: the variable that the file refers to, or the key where it
// refers to a file. Where nothing is set, it is the variable of the platform for an instance that is named
// as it, else the key.
func (i Instance) NameOf(key, variable string, value Secret) string {
	if name, is := strings.CutPrefix(value.String(), "env:"); is && name != "" {
		return name
	}
	own := i.Name == i.Settings.Type() && variable != ""
	switch {
	case !own:
		return "connectors." + i.Name + "." + key
	case strings.HasPrefix(value.String(), "file:"):
		return i.Name + "." + key
	}
	return variable
}

// A connectorType is a type of connector: its name, the path of its keys, and the
// settings of an instance that says nothing.
type connectorType struct {
	name, path string
	plain      func() ConnectorSettings
}

var connectorTypes = []connectorType{
	{platforms.Telegram, "telegram", func() ConnectorSettings { t := plainTelegram(); return &t }},
	{platforms.Slack, "slack", func() ConnectorSettings { s := plainSlack(); return &s }},
	{platforms.Discord, "discord", func() ConnectorSettings { d := plainDiscord(); return &d }},
	{platforms.Webhook, "connectors.webhook", func() ConnectorSettings { w := plainWebhook(); return &w }},
}

// instanceGroup declares the keys of the types that have no group of their own. Its name
// stands for that of each instance.
type instanceGroup struct {
	Webhook Webhook `key:"webhook" class:"destination" off:"the connector is off"`
}

// group returns the settings of the platform that has a group of its own; nil for another name.
func (c *Connectors) group(name string) ConnectorSettings {
	switch name {
	case platforms.Telegram:
		return &c.Telegram
	case platforms.Slack:
		return &c.Slack
	case platforms.Discord:
		return &c.Discord
	}
	return nil
}

// Instances returns the connectors that are wanted: those of the groups of platforms, then
// those of the group connectors.
func (c Connectors) Instances() (all []Instance) {
	for _, name := range []string{platforms.Telegram, platforms.Slack, platforms.Discord} {
		all = append(all, Instance{name, c.group(name), place{key: name}})
	}
	return slices.DeleteFunc(append(all, c.Named...), func(i Instance) bool { return !i.Settings.Wanted() })
}

// Instance returns the settings of the instance with a name.
func (c Connectors) Instance(name string) (ConnectorSettings, bool) {
	all := c.Instances()
	i := slices.IndexFunc(all, func(i Instance) bool { return i.Name == name })
	if i < 0 {
		return nil, false
	}
	return all[i].Settings, true
}

// Platforms returns the platforms of the instances.
func (c Connectors) Platforms() platforms.Instances {
	all := make(platforms.Instances)
	for _, i := range c.Named {
		all[i.Name] = i.Settings.Type()
	}
	return all
}

// Secrets returns the credentials of all instances.
func (c Connectors) Secrets() (all []Secret) {
	for _, i := range c.Instances() {
		for _, x := range i.Settings.Credentials() {
			all = append(all, x.Value)
		}
	}
	return all
}

// Off says why an instance is off; empty for one that is not, or that is not configured.
func (c Connectors) Off(name string) string {
	if s, ok := c.Instance(name); ok {
		return s.Off()
	}
	return ""
}

var instanceName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// reservedNames are names of connectors that exist once, and words that stand where a
// connector's name can, also in ids of messages.
var reservedNames = []string{
	"web", "terminal", "api", "cron", "heartbeat", "subagent", "subagents", "agent", "agents", "user", "none", "all", "any", DefaultProfile, "operator", "operators", "claybot", "system", "mcp", "files",
	"reminder", "task", "failure", "answer", "ask", "undo", "stop", "cancel", "reset",
}

// instanceType returns the type of the instance with a name and the keys n.
func instanceType(name string, n *yaml.Node) (string, error) {
	known := make([]string, len(connectorTypes))
	for i, t := range connectorTypes {
		known[i] = t.name
	}
	listed := strings.Join(known, ", ")
	switch {
	case !instanceName.MatchString(name):
		return "", fmt.Errorf("%s is not the name of a connector, which has at most 32 of a-z, 0-9 and -", quote(name))
	case slices.Contains(reservedNames, name):
		return "", fmt.Errorf("the name %s is reserved; choose another one", quote(name))
	case n.Kind != yaml.MappingNode:
		return "", fmt.Errorf("want a group of keys with type (%s), found %s", listed, kindOf(n))
	}
	var types []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "type" {
			types = append(types, n.Content[i+1])
		}
	}
	of := slices.Contains(known, name) // which its name says
	switch {
	case len(types) == 0 && of:
		return name, nil
	case len(types) == 0:
		return "", fmt.Errorf("has no type (%s)", listed)
	case len(types) > 1:
		return "", fmt.Errorf("has two types")
	}
	word, err := oneOf(strings.TrimSpace(types[0].Value), known...)
	switch {
	case err != nil:
		return "", &wordError{fmt.Errorf("the type %w", err), types[0].Value, known}
	case of && word != name:
		return "", fmt.Errorf("a connector named %s must be of that type, not %s", name, word)
	}
	return word, nil
}

// meet notes the instances that the file has, before what names them is read.
func (r *reader) meet(root *yaml.Node) {
	r.instances = make(platforms.Instances)
	if root == nil {
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, group := root.Content[i].Value, root.Content[i+1]
		if _, blocks := keyAt(key); blocks && !empty(group) {
			r.blocks = append(r.blocks, key)
		}
		if key != "connectors" || group.Kind != yaml.MappingNode {
			continue
		}
		for j := 0; j+1 < len(group.Content); j += 2 {
			name := group.Content[j].Value
			if t, err := instanceType(name, group.Content[j+1]); err == nil {
				r.instances[name] = t
			}
		}
	}
}

func setInstances(r *reader, at place, n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want names of connectors with their settings, found %s; ignored", kindOf(n))
		return
	}
	for m := range r.each(at, n) {
		before := len(r.warnings) - m.warned
		if m.warned == 0 {
			r.instance(m, &c.Connectors)
		}
		r.lost(m.name, before)
	}
}

// instance reads one entry of the group connectors.
func (r *reader) instance(m member, c *Connectors) {
	name, err := instanceType(m.name, m.value)
	if err == nil && slices.Contains(r.blocks, m.name) {
		err = fmt.Errorf("the group %s configures the connector of this name already: keep one of the two", m.name)
		c.close(Instance{Name: m.name}, m.at.String()+": "+err.Error())
	}
	if err != nil {
		r.refuse(m.at, err)
		return
	}
	t := connectorTypes[slices.IndexFunc(connectorTypes, func(t connectorType) bool { return t.name == name })]
	settings := c.group(m.name)
	if settings == nil {
		settings = t.plain()
		c.Named = append(c.Named, Instance{m.name, settings, m.at})
	}
	keys := *m.value
	keys.Content = nil
	for i := 0; i+1 < len(m.value.Content); i += 2 {
		if m.value.Content[i].Value != "type" {
			keys.Content = append(keys.Content, m.value.Content[i:i+2]...)
		}
	}
	r.group(place{file: m.at.file, line: m.at.line, key: m.at.key, path: t.path}, &keys, settings)
	if w, ok := settings.(*Webhook); ok && w.fault() != "" {
		r.warn(m.at, "%s; ignored", w.fault())
		w.off(t.path, m.at.String()+": "+w.fault())
	}
	if of, is := settings.(owner); is && c.group(m.name) == nil && !settings.Wanted() { // one with a group may have its token elsewhere
		why := "has no " + settings.Credentials()[0].Key
		r.warn(m.at, "%s; ignored", why)
		of.off(noCredential, m.at.String()+": "+why)
	}
}

// noCredential is, in place of a path, why a connector is off that has no token.
const noCredential = "credentials"

// lost says of the warnings since before which connector they switch off: what is left
// of one that was not understood may go elsewhere.
func (r *reader) lost(name string, before int) {
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		text, open := ignored(*w)
		if !w.Off && (!open || w.Key != joinPath("connectors", name)) {
			continue
		}
		if w.Off {
			text, _, _ = strings.Cut(w.Text, "; the connector ")
		}
		w.Text, w.Off = text+"; the connector "+strings.Trim(quote(name), `"`)+" is off"+until, true
		if new(Connectors).group(name) == nil {
			w.path = "connectors"
		}
	}
}

// separate switches off every instance that uses the account of one before it: each would
// take the other's messages.
func (c *Connectors) separate(r *reader) {
	owners := make(map[string]string)
	for _, i := range c.Instances() {
		for _, account := range i.Settings.Accounts() {
			owner, taken := owners[account]
			if !taken {
				owners[account] = i.Name
				continue
			}
			if owner == i.Name {
				continue
			}
			c.refuse(r, i, fmt.Sprintf("the connectors %s and %s have the same token, which one of them can use", owner, i.Name))
			break
		}
	}
}

// The codes of a token or key that does not have its form, and of one with spaces or quotes.
const (
	CodeMalformed = "credential-malformed"
	CodeQuoted    = "credential-quoted"
)

// HasQuotes reports whether a token or key has spaces or quotes, which none has.
func HasQuotes(value string) bool {
	return strings.TrimSpace(value) != value || strings.ContainsAny(value, " \t\r\n\"'")
}

// WithoutQuotes is the next step for a token or key with spaces or quotes, by where to get it.
func WithoutQuotes(where string) string { return where + ", and set it without them" }

// WrongCredentials switches off every connector with a credential that its platform could only refuse, and
// says so, and which has none.
func (c *Config) WrongCredentials() []Warning {
	r := new(reader)
	for _, i := range c.Connectors.Instances() {
		if i.Settings.Off() == "" {
			c.Connectors.malformed(r, i)
		}
	}
	c.tokenless(r)
	return r.warnings
}

// CodeTemplate is the code of a template that is not valid.
const CodeTemplate = "webhook-template"

// WrongHooks switches off every webhook with a template that parse refuses, and says so.
func (c *Config) WrongHooks(parse func(*Webhook) error) []Warning {
	r := new(reader)
	for _, i := range c.Connectors.Instances() {
		s, hooks := i.Settings.(*Webhook)
		if !hooks || s.Off() != "" {
			continue
		}
		if err := parse(s); err != nil {
			c.Connectors.refuse(r, i, err.Error())
			w := &r.warnings[len(r.warnings)-1]
			w.code, w.Next = CodeTemplate, "correct the template; claybot reads the file again by itself"
		}
	}
	return r.warnings
}

// malformed switches an instance off for each credential that does not have its form; two that are swapped are one
// cause.
func (c *Connectors) malformed(r *reader, i Instance) {
	all := i.Settings.Credentials()
	for n, x := range all {
		v := x.Value.Value()
		if v == "" || x.Form == nil || x.Form.MatchString(v) {
			continue
		}
		why, code, next := i.Names()[n]+" is malformed", CodeMalformed, x.Where
		if HasQuotes(v) {
			why, code, next = i.Names()[n]+" contains spaces or quotes", CodeQuoted, WithoutQuotes(x.Where)
		}
		swapped := slices.IndexFunc(all, func(other Credential) bool { return other.Form != nil && other.Form.MatchString(v) })
		if swapped >= 0 {
			why += ", and looks like " + i.Names()[swapped] + ": swap the two"
		}
		c.refuse(r, i, why)
		w := &r.warnings[len(r.warnings)-1]
		w.code, w.Next = code, next
		if swapped >= 0 {
			return
		}
	}
}

// tokenless says which platforms the group connectors has that get no connector, since no source has their token.
func (c *Config) tokenless(r *reader) {
	written := valueOf(c.Source.root, "connectors")
	if written == nil || written.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(written.Content); i += 2 {
		name := written.Content[i]
		s := c.Connectors.group(name.Value)
		if s == nil || s.Wanted() || s.Off() != "" {
			continue
		}
		first := s.Credentials()[0]
		r.warn(place{file: c.Source.File, line: name.Line, key: "connectors." + name.Value}, "has no %s; the connector %s is off%s", first.Key, name.Value, until)
		w := &r.warnings[len(r.warnings)-1]
		w.Off, w.code, w.Next = true, CodeMissing, first.Where+"; then: claybot setup "+name.Value
	}
}

// valueOf returns the value of a key of a group; nil for none.
func valueOf(group *yaml.Node, key string) *yaml.Node {
	if group == nil || group.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(group.Content); i += 2 {
		if group.Content[i].Value == key {
			return group.Content[i+1]
		}
	}
	return nil
}

// reachable switches off every instance whose platform cannot send it anything: it takes requests, and
// has no address for them.
func (c *Connectors) reachable(r *reader, http HTTP) {
	for _, i := range c.Instances() {
		h, ok := i.Settings.(interface {
			Hooked() bool
			Receives() string
		})
		if s, is := i.Settings.(*Slack); is && s.Install && !s.Hooked() && s.Off() == "" {
			c.refuse(r, i, "install: on needs receive: http: Slack leads people who install the app to an address of claybot")
			continue
		}
		if !ok || !h.Hooked() || i.Settings.Off() != "" {
			continue
		}
		why := ""
		switch {
		case http.Addr == Off:
			why = "receive: " + h.Receives() + " needs the HTTP server; set http.addr"
		case http.PublicURL == "":
			why = "receive: " + h.Receives() + " needs http.public_url, the address under which the platform reaches claybot"
		default:
			continue
		}
		c.refuse(r, i, why)
	}
}

// refuse switches an instance off and warns of it.
func (c *Connectors) refuse(r *reader, i Instance, why string) {
	before := len(r.warnings)
	r.warn(i.at, "%s; ignored", why)
	w := &r.warnings[before]
	w.Text, _ = ignored(*w)
	c.close(i, w.String())
	w.Text, w.Off, w.path = w.Text+"; the connector "+i.Name+" is off"+until, true, "connectors"
}

// close switches an instance off.
func (c *Connectors) close(i Instance, why string) {
	to, _ := i.Settings.(owner)
	if of := c.group(i.Name); of != nil { // Instances has a copy
		to, _ = of.(owner)
	}
	to.off(i.Name, why)
}
