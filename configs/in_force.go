package configs

import (
	"cmp"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// What is in force where the file says nothing.

// deepPath is the key of the default profile that is false while nothing below it is set.
const deepPath = profilePath + ".deep"

// listed are the paths of the keys that Values lists: Keys, and the groups that are a value while
// nothing in them is set. What makes an agent deep stands below it only once it is.
func (c Config) listed() []string {
	if c.Agents.Profiles[DefaultProfile].Engine.Deep != nil {
		return append(Keys(), "connectors")
	}
	all := slices.DeleteFunc(Keys(), func(path string) bool { return within(path, deepPath) })
	return append(all, "connectors", deepPath)
}

// Value returns a key as it is in force, and of a group all its keys; none for a key that
// does not exist.
func (c Config) Value(key string) []Value {
	all := slices.DeleteFunc(c.Values(), func(v Value) bool { return !within(v.Key, key) })
	group, rest, _ := strings.Cut(key, ".")
	name, own, _ := strings.Cut(rest, ".")
	switch p, ok := c.Agents.Profiles[name]; {
	case len(all) > 0:
		return all
	case group == "agents" && ok:
		return c.profileValue(key, own, p)
	case group == "connectors" && own != "":
		return c.instanceValue(key, name, own)
	}
	return c.entryValue(key)
}

// profileValue is Value for what a profile has of the default one, or has without being asked.
func (c Config) profileValue(key, own string, p Profile) (all []Value) {
	c.Agents.Profiles = map[string]Profile{DefaultProfile: p}
	path := strings.TrimSuffix(profilePath+"."+own, ".")
	if text, ok := c.inForce(path); ok && own != "" {
		return []Value{{Key: key, Value: text, Origin: OriginDefault}}
	}
	for _, x := range c.listed() {
		if rest, below := strings.CutPrefix(x, path); below && within(x, path) {
			if text, ok := c.inForce(x); ok {
				all = append(all, Value{Key: key + rest, Value: text, Origin: OriginDefault})
			}
		}
	}
	return all
}

// instanceValue is Value for a key that the file does not set of a connector with a name of its own.
func (c Config) instanceValue(key, name, own string) []Value {
	for _, i := range c.Connectors.Named {
		t := slices.IndexFunc(connectorTypes, func(t connectorType) bool { return t.name == i.Settings.Type() })
		if i.Name != name || t < 0 {
			continue
		}
		k, known := keyAt(joinPath(connectorTypes[t].path, own))
		group := structAt(i.Settings, own)
		if !known || group == nil {
			return nil
		}
		if text, ok := k.text(group); ok {
			return []Value{{Key: key, Value: text, Origin: OriginDefault}}
		}
	}
	return nil
}

// inForce returns the value of a key that is declared at path, as the file would say it, and
// whether it has one form.
func (c Config) inForce(path string) (text string, ok bool) {
	k, known := keyAt(path)
	switch {
	case !known:
		return "", false
	case path == "agents."+foregroundScope:
		return c.Agents.Scope, true
	case path == "connectors":
		return "", len(c.Connectors.Named) == 0
	}
	var group any
	if own, profile := strings.CutPrefix(path, profilePath+"."); profile {
		group = c.Agents.Profiles[DefaultProfile].groupOf(own)
	} else {
		group = structAt(&c, path)
	}
	if group == nil {
		return "", false
	}
	return k.text(group)
}

// groupOf is structAt for a key of a profile. Of what was not set, it has the defaults.
func (p Profile) groupOf(own string) any {
	group, rest, below := strings.Cut(own, ".")
	switch {
	case below && group == "plan":
		plan := plainPlan()
		return structAt(cmp.Or(p.Engine.Plan, &plan), rest)
	case below && group == "explore":
		explore := plainExplore()
		return structAt(cmp.Or(p.Engine.Explore, &explore), rest)
	case below && group == "deep":
		deep := plainDeep()
		return structAt(cmp.Or(p.Engine.Deep, &deep), rest)
	}
	return structAt(&draft{Profile: p}, own)
}

// text returns the value of the key in group, the struct that declares it, as the file would say
// it. It reports false for kinds of values that have more than one form.
func (k key) text(group any) (text string, ok bool) {
	onOff := map[bool]string{true: "on", false: Off}
	switch g := group.(type) {
	case *draft:
		switch k.kind {
		case "notes":
			return onOff[!g.Notes.Off], true
		case "browser":
			return onOff[g.Workspace.Browser], true
		case "system fallback":
			return g.Model.SystemFallback, true
		case "model":
			return g.Model.Name, true
		case "workspace":
			return g.Workspace.Provider, true
		case "deep":
			return "false", g.Engine.Deep == nil
		}
	case *Web:
		if k.kind == "fetch" && g.Allow == nil {
			return map[bool]string{true: Off, false: "public"}[g.NoFetch], true
		}
	case *Plan:
		switch {
		case k.kind == "quiet hours":
			return g.Quiet.String(), true
		case k.kind == "quiet" && g.Quiet == nil:
			return "", true
		case k.kind == "quiet":
			return g.Quiet.What, true
		}
	}
	if k.typ == reflect.TypeFor[struct{}]() || k.kind == "fetch" {
		return "", false
	}
	text, ok = k.fieldText(k.field(group))
	return cmp.Or(text, k.unset), ok
}

// fieldText is text for a field of its own.
func (k key) fieldText(field any) (text string, ok bool) {
	switch v := field.(type) {
	case *bool:
		yes, no, _ := strings.Cut(cmp.Or(k.words, truths[k.kind], "true,false"), ",")
		if *v {
			return yes, true
		}
		return no, true
	case *string:
		return masked(*v), true
	case *int:
		return k.unless0(strconv.Itoa(*v)), true
	case **int:
		if *v == nil {
			return "", true
		}
		return strconv.Itoa(**v), true
	case *int64:
		return k.unless0(k.wide(*v)), true
	case *float64:
		return k.unless0(strconv.FormatFloat(*v, 'f', -1, 64)), true
	case *time.Duration:
		if k.kind == "milliseconds" || k.kind == "longest debounce" {
			return strconv.FormatInt(v.Milliseconds(), 10), true
		}
		return k.unless0(span(*v)), true
	case **time.Location:
		return (*v).String(), true
	case *slog.Level:
		return strings.ToLower(v.String()), true
	case *Secret:
		if v.Named() {
			return Hidden, true
		}
		return "", true
	case *[]string:
		if len(*v) == 0 {
			return "", true
		}
		return masked(flow(sequence(*v), false)), true
	}
	return "", reflect.ValueOf(field).Elem().IsZero()
}

// truths are the words for true and false of kinds that say them.
var truths = map[string]string{"memory": "on,off", "global notes": "write,read"}

// unless0 returns a number, and nothing for a 0 that the limits of the key leave out: it stands
// for a default of the part that reads it.
func (k key) unless0(text string) string {
	if text == "0" && k.words != "0" && !strings.HasPrefix(k.limits, "0..") {
		return ""
	}
	return text
}

// wide returns a number, a size or an amount of money.
func (k key) wide(n int64) string {
	switch {
	case k.kind == "micro-USD":
		return strconv.FormatFloat(float64(n)/1e6, 'f', -1, 64)
	case k.kind == "bytes" && n > 0 && n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "MiB"
	case k.kind == "size":
		for _, unit := range []struct {
			letter string
			bytes  int64
		}{{"g", 1 << 30}, {"m", 1 << 20}, {"k", 1 << 10}} {
			if n > 0 && n%unit.bytes == 0 {
				return strconv.FormatInt(n/unit.bytes, 10) + unit.letter
			}
		}
	}
	return strconv.FormatInt(n, 10)
}

// span returns a duration such as 30m, or 7d.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == 0:
		return "0"
	case d%day == 0:
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

func sequence(all []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range all {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
	}
	return n
}
