package configs

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
)

// A key is one setting, as the tags of a field of the settings declare it:
//
//	key     the name in the file. A name after ^ belongs to the group above. With
//	        ",leaf" the keys below are those of another group. ",inline" puts the keys
//	        of a struct into the group of the field.
//	class   harmless, narrowing or destination; by default that of the group
//	local   yes: only the machine may change it, see IsLocal; by default as the group
//	kind    how the value is read, see setterOf; by default the type of the field says it
//	limits  least..most of a number, a duration or a size
//	default what holds where the field is zero, which says that nothing was set
//	words   the only values, separated by commas; of a bool those for true and false
//	env     the variable of the environment that sets the key
//	bad     the value after one that is not valid; by default the owner is off
//	off     what the warning says of it
//
// A field with the name _ declares a key whose kind stores the value.
type key struct {
	name, kind, limits, words, env, bad, off, unset string
	class                                           Class
	leaf, local                                     bool
	index                                           []int        // of the field
	typ, in                                         reflect.Type // of the field, and of the struct whose group has the key
}

// field returns a pointer to the field of the key in to, which points to a struct.
func (k key) field(to any) any {
	return reflect.ValueOf(to).Elem().FieldByIndex(k.index).Addr().Interface()
}

var keyCache sync.Map // reflect.Type -> []key

// keysOf returns the keys that the struct type t declares, in the order of its fields.
func keysOf(t reflect.Type) []key {
	if all, ok := keyCache.Load(t); ok {
		return all.([]key)
	}
	var all []key
	declared(t, t, nil, false, &all)
	keyCache.Store(t, all)
	return all
}

func declared(t, in reflect.Type, index []int, above bool, all *[]key) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		name, option, _ := strings.Cut(f.Tag.Get("key"), ",")
		name, up := strings.CutPrefix(name, "^")
		switch {
		case f.Anonymous && name == "" || option == "inline":
			declared(f.Type, in, at, above, all)
		case name == "" || up != above:
		default:
			*all = append(*all, key{
				name: name, kind: f.Tag.Get("kind"), limits: f.Tag.Get("limits"), words: f.Tag.Get("words"), env: f.Tag.Get("env"),
				bad: f.Tag.Get("bad"), off: f.Tag.Get("off"), unset: f.Tag.Get("default"), class: classNames[f.Tag.Get("class")],
				leaf: option == "leaf", local: f.Tag.Get("local") != "", index: at, typ: f.Type, in: in,
			})
			if !above && f.Type.Kind() == reflect.Struct {
				declared(f.Type, in, at, true, all)
			}
		}
	}
}

// below returns the struct type that declares the keys below k, and whether they are
// those of the entries of a list; nil for none.
func (k key) below() (t reflect.Type, list bool) {
	t = k.typ
	if t.Kind() == reflect.Slice {
		t, list = t.Elem(), true
	} else if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case k.leaf:
		return nil, false
	case k.kind == "profiles":
		return reflect.TypeFor[profileGroup](), false
	case k.kind == "instances":
		return reflect.TypeFor[instanceGroup](), false
	case t == reflect.TypeFor[claybot.Question]():
		return reflect.TypeFor[question](), true
	case t.Kind() != reflect.Struct || len(keysOf(t)) == 0:
		return nil, false
	}
	return t, list
}

// A schema is all keys by their paths, and the paths in their order.
type schema struct {
	keys  map[string]key
	paths []string // of the keys without keys below them
}

var declarations = sync.OnceValue(func() *schema {
	s := &schema{keys: make(map[string]key)}
	s.add(reflect.TypeFor[Config](), "", 0, false)
	return s
})

func (s *schema) add(t reflect.Type, group string, class Class, local bool) {
	for _, k := range keysOf(t) {
		path := joinPath(group, k.name)
		if path == "model.fallback[].fallback" {
			continue
		}
		k.class, k.local = cmp.Or(k.class, class), k.local || local
		s.keys[path] = k
		t, list := k.below()
		if t == nil || list && group != "" && k.name != "fallback" {
			s.paths = append(s.paths, path)
		}
		if list {
			path += "[]"
		}
		if t != nil {
			s.add(t, path, k.class, k.local)
		}
	}
}

// Keys lists every key of the file by its full path, in the order of the
// declarations. The profile is the default one; [] stands for the entries of a list.
func Keys() []string { return slices.Clone(declarations().paths) }

// keyAt returns the key with a path. Those of the model and the workspace of a profile
// are the common ones; a list and its entries have one path.
func keyAt(path string) (key, bool) {
	path = strings.TrimSuffix(path, "[]")
	if own, ok := strings.CutPrefix(path, profilePath+".model."); ok {
		path = "model." + own
	} else if own, ok := strings.CutPrefix(path, profilePath+".workspace."); ok {
		path = "workspaces." + own
	}
	k, ok := declarations().keys[path]
	return k, ok
}

// A Class says what a bad value of a key costs.
type Class int

// The classes of keys. The zero Class is none: every key has one of these.
const (
	// Harmless keys decide how something looks or when it happens. A bad value costs
	// itself: the default holds.
	Harmless Class = iota + 1
	// Narrowing keys set limits: what may be spent, who may write, what agents may
	// do. A default might allow more than was meant, so a bad value switches off
	// what the key belongs to.
	Narrowing
	// Destination keys say where texts, keys, money and files go. A default might
	// send them elsewhere, so a bad value switches off what the key belongs to.
	Destination
)

var classNames = map[string]Class{"harmless": Harmless, "narrowing": Narrowing, "destination": Destination}

// closes reports whether a bad value switches off what the key belongs to.
func (c Class) closes() bool { return c >= Narrowing }

func classOf(path string) Class {
	k, _ := keyAt(path)
	return k.class
}

// offAt returns what is off after a bad value of the key with a path: its own text, or
// that of the nearest group around it.
func offAt(path string) string {
	for ; path != ""; path = strings.TrimSuffix(path[:max(0, strings.LastIndexByte(path, '.'))], "[]") {
		if k, _ := keyAt(path); k.off != "" {
			return k.off
		}
	}
	return ""
}

// profilePath stands for each profile in a path.
const profilePath = "agents." + DefaultProfile

// lastName is the name of the key with a path.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func joinPath(group, name string) string {
	if group == "" {
		return name
	}
	return group + "." + name
}
