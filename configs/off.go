package configs

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
)

// reasons say why something is switched off, by the paths of the keys;
// nil for none. A list is never changed, so that copies of settings may share one.
type reasons = *reason

type reason struct {
	path, why string
	next      reasons
}

// with returns the list with one more reason. The first one for a path stays.
func (f *reason) with(path, why string) reasons {
	if f == nil {
		return &reason{path: path, why: why}
	}
	if f.path == path {
		return f
	}
	return &reason{f.path, f.why, f.next.with(path, why)}
}

// without returns the list without the reason for a path.
func (f *reason) without(path string) reasons {
	switch {
	case f == nil:
		return nil
	case f.path == path:
		return f.next.without(path)
	}
	return &reason{f.path, f.why, f.next.without(path)}
}

// has reports whether there is a reason for a path.
func (f *reason) has(path string) bool { return f != nil && (f.path == path || f.next.has(path)) }

// says reports whether there is this reason.
func (f *reason) says(why string) bool { return f != nil && (f.why == why || f.next.says(why)) }

// first returns the first reason; empty for none.
func (f *reason) first() string {
	if f == nil {
		return ""
	}
	return f.why
}

// in returns the first reason for a group or a key in it; empty for none.
func (f *reason) in(group string) string {
	switch {
	case f == nil:
		return ""
	case f.path == group || strings.HasPrefix(f.path, group+"."):
		return f.why
	}
	return f.next.in(group)
}

// faults say why settings are switched off. Settings that a bad value switches off
// embed it.
type faults struct{ why reasons }

// Off says why the settings are switched off; empty when they hold.
func (f faults) Off() string { return f.why.first() }

func (f *faults) with(path, why string) { f.why = f.why.with(path, why) }

func (f *faults) off(path, why string) string {
	f.with(path, why)
	return offAt(path)
}

func (f *faults) on(path string) { f.why = f.why.without(path) }

// An owner has settings that a bad value switches off.
type owner interface {
	// off switches off what the key with a path belongs to. why is a sentence for
	// operators. It returns what holds now, for the warning; empty when the reader
	// of the key has left out what was bad and the rest holds.
	off(path, why string) (now string)
	// on takes the fault of the key with a path back: it has a good value.
	on(path string)
}

// off switches off what the key with a path belongs to: the key alone, where it declares
// the value after a bad one, else the struct that to points to. It returns what holds
// now; empty when the bad value is left out and the rest holds.
func off(to any, path, why string) (now string) {
	if k, ok := keyAt(path); ok && k.in == reflect.TypeOf(to).Elem() {
		switch {
		case k.off == "-":
			return ""
		case k.bad != "":
			k.setBad(to)
			return k.off
		}
	}
	if o, ok := to.(owner); ok {
		return o.off(path, why)
	}
	return ""
}

// setBad stores the value after a bad one.
func (k key) setBad(to any) {
	switch field := k.field(to).(type) {
	case *bool:
		*field = k.bad == "true"
	case *int:
		*field, _ = strconv.Atoi(k.bad) // declared in digits
	case *string:
		*field = k.bad
	case *[]string:
		*field = strings.Fields(strings.Trim(k.bad, "[]"))
	default:
		reflect.ValueOf(field).Elem().SetZero()
	}
}

// ownerOf returns the settings that the key with a path belongs to.
func (c *Config) ownerOf(path string) any {
	to, found := any(c), any(c)
	for name := range strings.SplitSeq(path, ".") {
		keys := keysOf(reflect.TypeOf(to).Elem())
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		if i < 0 {
			break
		}
		if keys[i].bad != "" || keys[i].off == "-" {
			return to
		}
		if keys[i].typ.Kind() != reflect.Struct {
			break
		}
		if to = keys[i].field(to); len(keysOf(reflect.TypeOf(to).Elem())) == 0 {
			break
		}
		if _, ok := to.(owner); ok {
			found = to
		}
	}
	return found
}

// groupOf returns the struct whose group has the key with a path.
func (c *Config) groupOf(path string) any { return structAt(c, path) }

// structAt returns the struct below to whose group has the key with a path; nil where there
// is none, as for the entries of a list.
func structAt(to any, path string) any {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		keys := keysOf(reflect.TypeOf(to).Elem())
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		if i < 0 {
			return nil
		}
		if to = keys[i].field(to); reflect.TypeOf(to).Elem().Kind() != reflect.Struct {
			return nil
		}
	}
	return to
}

// off switches off the part of the configuration that the key with a path belongs to.
func (c *Config) off(path, why string) string {
	if to := c.ownerOf(path); to != any(c) {
		return off(to, path, why)
	}
	if lastName(path) == foregroundScope {
		c.Agents.Scope = ScopeOwner
		return offAt(path)
	}
	c.shut = c.shut.with(path, why)
	return offAt(path)
}

func (c *Config) on(path string) { c.shut = c.shut.without(path) }

// off leaves the store named and unreadable: nothing else is used in its place.
func (s *Storage) off(path, _ string) string {
	s.URL = NewSecret(path, "")
	return offAt(path)
}

func (*Storage) on(string) {}

func (f *Files) off(path, why string) string {
	f.Fault = why
	return offAt(path)
}

func (*Files) on(string) {}

// until ends the sentences about what is switched off.
const until = " until this is corrected"

// close switches off what the key with a path belongs to, when one of the warnings
// since before refused its value. It reports whether there was one.
func (r *reader) close(to any, at place, path string, before int) bool {
	refused := false
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		if w.Key != at.key {
			continue // of a key within the group
		}
		refused = true
		if text, open := ignored(*w); open && classOf(path).closes() {
			w.shut(to, path, text)
		}
	}
	return refused
}

// seal is close for what is refused anywhere within the key with a path.
func (r *reader) seal(to any, path string, before int) {
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		if text, open := ignored(*w); open {
			w.shut(to, path, text)
		}
	}
}

// sealAll is seal also for what is missing, as a secret that cannot be read.
func (r *reader) sealAll(to any, path string, before int) {
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		w.shut(to, path, strings.TrimSuffix(w.Text, "; ignored"))
	}
}

// shut switches off what the key of a warning belongs to. text is the warning
// without what came of it.
func (w *Warning) shut(to any, path, text string) {
	w.Text = text
	if now := off(to, path, w.String()); now != "" {
		w.Text, w.Off = text+"; "+now+until, true
		w.path = path
	} else {
		w.Text = text + "; ignored"
	}
}

// mended says of the warnings about the key with a path that name, a variable of
// the environment, has a good value instead.
func (r *reader) mended(path, name string) {
	for i := range r.warnings {
		w := &r.warnings[i]
		if w.Off && w.path == path && w.Key != name {
			text, _, _ := strings.Cut(w.Text, "; ")
			w.Text, w.Off = text+"; ignored, because "+name+" is set", false
		}
	}
}

// addressed are names of keys that people give to an address or an account.
var addressed = lazyregexp.New(`(?i)ur[il]|host|addr|endpoint|base|server|proxy|token|key|secret|account|region`)

// money are plain names of keys that people give to a limit of what is spent.
const money = `usd|dollar|budget|cost|spend|spent|money|quota`

// keyAliases are words that people give to keys which decide where something goes or
// what is allowed, as patterns of plain names in a group.
var keyAliases = []struct {
	group string
	names *lazyregexp.Regexp
	path  string
}{
	{"", lazyregexp.New(money + `|^(rate)?limits?$`), "budgets"},
	{"", lazyregexp.New(`^(profiles?|permissions?|(dis)?allow(ed)?tools|deny|denied(tools)?)$`), "agents"},
	{"", lazyregexp.New(`^(allow|deny|block|white|black)(ed)?(list|users?|ids?|people|chats?)$`), "access"},
	{"limits", lazyregexp.New(money), "budgets"},
	{"model", lazyregexp.New(money), "model"},
	{profilePath, lazyregexp.New(`^(for|who|whom|match.*|appl(y|ies)(to)?|(from|on|in)?(connector|channel|chat|user|people|person|platform|conversation|agent)s?)$`), profilePath + ".match"},
	{profilePath, lazyregexp.New(`^tools?(allow|deny|denied|dis|block|forbid|exclu|inclu|enable|list|set|only|permission)|^(allow|deny|denied|dis|block|forbid|exclu|inclu|enable|no|only|with).*tools?$|^(deny|denied|disallow|forbid|block).*|^(allow|white|black)list$|^(permissions?|sandbox|readonly)$`), profilePath + ".tools"},
	{profilePath, lazyregexp.New(`(ur[il]|host|endpoint|server|proxy)$|apikey`), profilePath + ".model"},
	{profilePath, lazyregexp.New(money), profilePath},
}

// bounds are groups of which every key is a limit.
var bounds = []string{"access", "subagents", profilePath + ".limits"}

// alias returns the path of the key, or group, that an unknown key of a group is another
// word for; empty for none.
func alias(group place, name string) string {
	if group.path == "" && group.key != "" { // an entry of a list, which is refused whole
		return ""
	}
	for _, a := range keyAliases {
		if a.group == group.path && a.names.MatchString(plain(name)) {
			return a.path
		}
	}
	if group.path == profilePath && isPlanKey(name) {
		return profilePath + ".plan." + name // see findDoubts
	}
	return ""
}

// closing returns the path of the key that an unknown key of a group stands for, as
// far as that decides what is switched off: one that it is another word for or
// resembles, or, in a group that says where something goes, one that may be an address
// or an account. A group of the root that is named as a provider, or has such a key, is
// one of the model. meant is the path of the key that the warning names, see Warning.
func closing(group place, m member, meant string, known []string) (path string, ok bool) {
	if path := alias(group, m.name); path != "" {
		return path, true
	}
	for _, k := range known {
		if typo(m.name, k) {
			path = joinPath(group.path, k)
			return path, classOf(path).closes()
		}
	}
	switch {
	case group.path == "model.fallback[]" && (addressed.MatchString(m.name) || addressIn(m.value)):
		return group.path + ".base_url", true
	case group.path == profilePath && addressIn(m.value):
		return profilePath + ".model", true
	case group.path != profilePath && classOf(group.path) == Destination && (addressed.MatchString(m.name) || addressIn(m.value)):
		return group.path, true
	case group.path == "" && m.value.Kind == yaml.MappingNode && (provider.MatchString(m.name) || addresses(m.value)):
		return "model", true
	case slices.Contains(bounds, group.path):
		return group.path, true
	case meant != "" && classOf(meant).closes(): // what is less near, or the key of another group
		return meant, true
	}
	return "", false
}

// addressIn reports whether a value is an address, or has one.
func addressIn(n *yaml.Node) bool {
	if n.Kind == yaml.ScalarNode {
		return addressForm.MatchString(n.Value) && !strings.ContainsAny(n.Value, " \n")
	}
	return slices.ContainsFunc(n.Content, addressIn)
}

// provider are names of groups that people give to a model.
var provider = lazyregexp.New(`(?i)^(openai|anthropic|claude|ollama|azure|gemini|google|mistral|groq|openrouter|vllm|litellm|lmstudio|llama|deepseek|llms?|models?|ai|providers?)([._-]|$)`)

// addresses reports whether a group has a key that may be an address or an account.
func addresses(n *yaml.Node) bool {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && addressed.MatchString(c.Value) || addresses(c) {
			return true
		}
	}
	return false
}

// typo reports whether name is k, mistyped: one slip, or two in a name of six
// letters and more. Two letters that changed places are one slip.
func typo(name, k string) bool {
	a, b := plain(name), plain(k)
	most := 1
	if len(b) >= 6 {
		most = 2
	}
	if a == b {
		return true
	}
	if len(a)-len(b) > most || len(b)-len(a) > most || len(b) < 3 {
		return false
	}
	return slips(a, b) <= most
}

// isSlip reports whether name is near, mistyped, and no other of the known names is.
func isSlip(name, near string, known []string) bool {
	return typo(name, near) && !slices.ContainsFunc(known, func(k string) bool { return k != near && typo(name, k) })
}

// mild reports whether nothing but the look or the moment of something hangs on the key, or group, with
// a path: it and all keys below it are harmless, and none is for the machine alone.
func mild(path string) bool {
	if classOf(path) != Harmless || localPath(path) {
		return false
	}
	for below, k := range declarations().keys {
		if inside := strings.HasPrefix(below, path+".") || strings.HasPrefix(below, path+"[]"); inside && (k.class != Harmless || localPath(below)) {
			return false
		}
	}
	return true
}

// slips is the number of letters that must be changed, added, dropped or swapped
// with their neighbour to make b of a.
func slips(a, b string) int {
	if len(a) > maxDistance || len(b) > maxDistance {
		return max(len(a), len(b))
	}
	var two, one, row [maxDistance + 1]int // for the beginnings of a that are two and one shorter, and this one
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		two, one = one, row
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := one[j-1]
			if a[i-1] != b[j-1] {
				cost = 1 + min(cost, one[j], row[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, two[j-2]+1)
			}
			row[j] = cost
		}
	}
	return row[len(b)]
}
