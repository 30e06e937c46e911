package texts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/tools"
)

// Replaced are texts of an operator in place of those of the catalogue: by language, then by id.
// Each must have passed Replaceable.
type Replaced map[string]map[string]string

// maxID is how long the id of a text is at most, but for a number at its end.
const maxID = 48

// The longest text of an operator: in place of a short one, which may be on a button, and of others.
const (
	shortText     = 40
	maxOwnLabel   = 75
	maxOwnMessage = 3000
)

// A catalogued is what can be replaced.
type catalogued struct {
	ids   map[string]string // by the English text
	texts map[string]string // the English text by id
}

// replaceable are all texts that can be replaced. Not among them are those that claybot recognizes
// when it reads them again, and what the menus of platforms say of commands.
var replaceable = sync.OnceValue(func() catalogued {
	fixed := []string{resent, tools.MoreArguments}
	for _, c := range slices.Concat(connectors.Commands, connectors.OperatorCommands) {
		fixed = append(fixed, c.Help)
	}
	all := catalogued{make(map[string]string), make(map[string]string)}
	for _, text := range slices.Sorted(maps.Keys(grammars[German].texts)) { // as complete as each language
		if slices.Contains(fixed, text) {
			continue
		}
		id := slug(text)
		for n := 2; all.texts[id] != ""; n++ {
			id = slug(text) + "-" + strconv.Itoa(n)
		}
		all.ids[text], all.texts[id] = id, text
	}
	return all
})

// slug is a text as an id: its first words, without its values.
func slug(text string) string {
	text, _, _ = strings.Cut(text, "|")
	text = strings.NewReplacer("'", "", "’", "").Replace(strings.ToLower(verb.ReplaceAllString(text, " ")))
	id := ""
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		if id != "" && len(id)+1+len(word) > maxID {
			break
		}
		id = strings.TrimPrefix(id+"-"+word, "-")
	}
	return id
}

// IDs are the ids of all texts that can be replaced, sorted.
func IDs() []string { return slices.Sorted(maps.Keys(replaceable().texts)) }

// ByID returns the text with an id in the language, with the marks of its values; empty if there is none.
func (v Voice) ByID(id string) string {
	text := replaceable().texts[id]
	if text == "" {
		return ""
	}
	v.Command = nil
	return v.In(text)
}

// ErrNoText means that no text has an id.
var ErrNoText = errors.New("there is no text with this id")

// Replaceable says why a text cannot be said in a language in place of the one with an id.
func Replaceable(language, id, text string) error {
	english := replaceable().texts[id]
	label := utf8.RuneCountInString(english) < shortText
	switch n := utf8.RuneCountInString(text); {
	case english == "":
		return ErrNoText
	case strings.TrimSpace(text) == "":
		return errors.New("a text must not be empty")
	case label && n > maxOwnLabel:
		return fmt.Errorf("%d characters are too many: this text may be on a button, which has room for %d", n, maxOwnLabel)
	case n > maxOwnMessage:
		return fmt.Errorf("%d characters are too many; at most %d fit into a message everywhere", n, maxOwnMessage)
	case strings.Contains(text, "```"):
		return errors.New("a text must not contain ```")
	}
	said, forms := []string{text}, strings.Split(english, "|")
	if len(forms) > 1 {
		said = strings.Split(text, "|")
		if n := grammars[Language(language)].forms; len(said) != n {
			return fmt.Errorf("the text needs %d forms with | between them, for each number: %q", n, Voice{Language: Language(language)}.ByID(id))
		}
	}
	want := valuesIn(forms[len(forms)-1])
	if len(want) == 0 && len(forms) == 1 {
		return nil // it is said as it is
	}
	for i, form := range said {
		rest := verb.ReplaceAllString(form, "")
		if at := strings.IndexByte(rest, '%'); at >= 0 {
			return fmt.Errorf("%q is not a value; write %%%% for a percent sign", rest[at:min(len(rest), at+8)])
		}
		for _, m := range verb.FindAllStringSubmatch(form, -1) {
			if strings.HasSuffix(m[0], "%") && m[0] != "%%" {
				return fmt.Errorf("%q is not a value; write %%%% for a percent sign", m[0])
			}
		}
		if given := valuesIn(form); !slices.Equal(given, want) && !(len(forms) > 1 && i == 0 && len(given) == 0) {
			return fmt.Errorf("the text needs the values %s, and has %s", marks(want), marks(given))
		}
	}
	return nil
}

// verb is the mark of a value in a text, with its number if it has one.
var verb = lazyregexp.New(`%(?:\[(\d)\])?(?:\.\d)?[a-z%]`)

// valuesIn are the values of a text as marks with their numbers, sorted, each once.
func valuesIn(text string) []string {
	var all []string
	next := 1
	for _, m := range verb.FindAllStringSubmatch(text, -1) {
		if strings.HasSuffix(m[0], "%") {
			continue
		}
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		all = append(all, fmt.Sprintf("%%[%d]%s", next, m[0][strings.LastIndexAny(m[0], "%]")+1:]))
		next++
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// marks are values as a message names them.
func marks(values []string) string {
	if len(values) == 0 {
		return "none"
	}
	return strings.Join(values, " ")
}
