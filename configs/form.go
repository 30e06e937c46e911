package configs

import (
	"reflect"
	"slices"
	"strings"
)

// The kinds of a Form.
const (
	FormTruth  = "truth"
	FormWord   = "word"
	FormNumber = "number"
	FormSecret = "secret"
	FormList   = "list"
	FormText   = "text"
	FormGroup  = "group" // YAML within braces, or a single value that stands for it
)

// A Form says how the value of a key can be entered.
type Form struct {
	Kind   string
	Words  []string // the values of a truth or a word
	Limits string   // of a number, such as 1..100
}

// FormOf returns the form of a key, also of a profile or a connector with a name of its own.
func FormOf(key string) Form {
	if IsSecret(key) {
		return Form{Kind: FormSecret}
	}
	for _, path := range pathsOf(key) {
		if k, ok := keyAt(path); ok {
			return k.form()
		}
	}
	return Form{Kind: FormText}
}

func (k key) form() Form {
	words := strings.Split(k.words, ",")
	switch {
	case k.kind == "level":
		return Form{Kind: FormWord, Words: []string{"debug", "info", "warn", "error"}}
	case k.kind == "scope":
		return Form{Kind: FormWord, Words: []string{ScopeOwner, ScopeAll}}
	case k.kind == "system fallback":
		return Form{Kind: FormWord, Words: []string{"auto", "always", "never"}}
	case k.kind == "quiet":
		return Form{Kind: FormWord, Words: []string{QuietPlanOnly, QuietDefer, QuietBlock}}
	case slices.Contains([]string{"notes", "browser"}, k.kind):
		return Form{Kind: FormTruth, Words: []string{"on", Off}}
	case truths[k.kind] != "":
		return Form{Kind: FormTruth, Words: strings.Split(truths[k.kind], ",")}
	case k.typ.Kind() == reflect.Bool && k.kind != "fetch":
		if k.words == "" {
			words = []string{"true", "false"}
		}
		return Form{Kind: FormTruth, Words: words}
	case k.kind == "" && k.typ.Kind() == reflect.String && k.words != "":
		return Form{Kind: FormWord, Words: words}
	case k.kind == "milliseconds", k.kind == "longest debounce", k.kind == "" && slices.Contains([]reflect.Kind{reflect.Int, reflect.Float64}, k.typ.Kind()),
		k.kind == "" && k.typ == reflect.TypeFor[int64](), k.typ == reflect.TypeFor[*int]():
		return Form{Kind: FormNumber, Limits: k.limits}
	case k.typ.Kind() == reflect.Slice:
		return Form{Kind: FormList}
	case k.typ.Kind() == reflect.Struct, k.typ.Kind() == reflect.Map, k.typ.Kind() == reflect.Pointer && k.typ.Elem().Kind() == reflect.Struct:
		return Form{Kind: FormGroup, Limits: k.limits}
	}
	return Form{Kind: FormText, Limits: k.limits}
}
