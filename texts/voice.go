package texts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
)

// A Language is a language that the catalogue is complete in, by its ISO 639-1 code. The zero
// Language is English.
type Language string

// The languages of the catalogue.
const (
	English Language = "en"
	German  Language = "de"
)

// A grammar is what the catalogue knows of a language.
type grammar struct {
	Name   string            // in the language itself
	Others []string          // its names in other languages of the catalogue
	texts  map[string]string // by the English text; nil for English
	forms  int               // of a counted noun
	plural func(n int64) int // which form a number takes
	clock  clock

	numbers numbers
}

// plural is the rule of English and German.
func plural(n int64) int {
	if n == 1 {
		return 0
	}
	return 1
}

// grammars are the languages. Another one also goes into the words of the setting language, in
// package configs, whose tests compare them.
var grammars = map[Language]grammar{
	English: {Name: "English", Others: []string{"Englisch"}, forms: 2, plural: plural, clock: englishClock, numbers: englishNumbers},
	German:  {Name: "Deutsch", Others: []string{"German"}, texts: together(german, germanMore, germanEngines, germanEffects, germanActions), forms: 2, plural: plural, clock: germanClock, numbers: germanNumbers},
}

// together are the texts of several tables.
func together(tables ...map[string]string) map[string]string {
	all := make(map[string]string)
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// Everywhere returns a text without values as it is said in each language.
func Everywhere(text string) []string {
	var all []string
	for _, l := range All() {
		all = append(all, Voice{Language: l}.In(text))
	}
	return all
}

// Languages lists the languages, by their own names.
func Languages() string {
	var all []string
	for _, l := range All() {
		all = append(all, listed(l))
	}
	return strings.Join(all, ", ")
}

// listed is a language as Languages lists it.
func listed(l Language) string { return grammars[l].Name + " (" + string(l) + ")" }

// All lists the languages, English first.
func All() []Language {
	all := []Language{English}
	for _, l := range slices.Sorted(maps.Keys(grammars)) {
		if l != English {
			all = append(all, l)
		}
	}
	return all
}

// LanguageOf returns the language of a locale such as de, de-AT or de_AT, or of a name as people
// write it, in any case: Deutsch, German or, as Languages lists it, Deutsch (de). ok is false
// where the catalogue has none.
func LanguageOf(locale string) (l Language, ok bool) {
	word := strings.TrimSpace(locale)
	for l, g := range grammars {
		if strings.EqualFold(g.Name, word) || strings.EqualFold(listed(l), word) ||
			slices.ContainsFunc(g.Others, func(name string) bool { return strings.EqualFold(name, word) }) {
			return l, true
		}
	}
	if i := strings.IndexAny(word, "-_"); i > 0 {
		word = word[:i]
	}
	l = Language(strings.ToLower(word))
	if _, ok = grammars[l]; !ok {
		return "", false
	}
	return l, true
}

// A Voice is how claybot speaks to the readers of one chat. The zero Voice speaks English, tells
// times in UTC, and writes commands as /command.
type Voice struct {
	Language Language
	// Zone is that of the times; nil for UTC. Times name it unless it is the readers' Own.
	Zone *time.Location
	Own  bool
	// Dated times name their date also where they are today or tomorrow, see Lasting.
	Dated bool
	// Command is how people write a command in this chat; nil for /command.
	Command func(name string) string
	// Replaced are texts of the operator in place of those of the catalogue.
	Replaced Replaced
	// Name is how the platform calls a person or a channel, connector/id; nil: unknown.
	Name func(id string) string
}

// ZoneName is the IANA name of the readers' own zone; empty where it is unknown.
func (v Voice) ZoneName() string {
	if !v.Own {
		return ""
	}
	return v.Zone.String()
}

// Location is the zone in which the readers tell times, or other where this Voice was not made for
// people.
func (v Voice) Location(other *time.Location) *time.Location {
	if v.Zone != nil {
		return v.Zone
	}
	return other
}

func (v Voice) grammar() grammar {
	if g, ok := grammars[v.Language]; ok {
		return g
	}
	return grammars[English]
}

// In returns a text of the catalogue in the language, with the commands in it as people write
// them here, but without its values. A text that the catalogue lacks stays as it is.
func (v Voice) In(text string) string {
	text = v.said(text)
	if v.Command == nil || !strings.Contains(text, "/") {
		return text
	}
	return commandWords.ReplaceAllStringFunc(text, func(word string) string {
		at := strings.IndexByte(word, '/')
		return word[:at] + v.Command(word[at+1:])
	})
}

// said is a text in the language, in the words of the operator if they have replaced it.
func (v Voice) said(text string) string {
	if own := v.Replaced[string(cmp.Or(v.Language, English))]; len(own) > 0 {
		if said, ok := own[replaceable().ids[text]]; ok {
			return said
		}
	}
	return cmp.Or(v.grammar().texts[text], text)
}

// commandWords are the commands in a text, with the character before each.
var commandWords = lazyregexp.New(`(?:^|[\s(“"*` + "`" + `])/(?:` + commandNames() + `)\b`)

func commandNames() string {
	var names []string
	for _, c := range slices.Concat(connectors.Commands, connectors.OperatorCommands) {
		names = append(names, regexp.QuoteMeta(c.Name))
	}
	return strings.Join(names, "|")
}

// Say returns a text of the catalogue in the language, with its values in place; see fmt.Sprintf.
// Only the text is translated, and only its commands are written as people write them here:
// values stay as they are, but for numbers, which are written as in the language.
func (v Voice) Say(text string, args ...any) string {
	if text = v.In(text); len(args) > 0 {
		return fmt.Sprintf(text, v.written(args)...)
	}
	return text
}

// Count is Say for a text with one form for each plural form of the language, separated by |. The
// number is its first value.
func (v Voice) Count(n int64, forms string, args ...any) string {
	g, all := v.grammar(), strings.Split(v.In(forms), "|")
	form := all[min(g.plural(n), len(all)-1)]
	switch {
	case !strings.Contains(form, "%"):
		return form
	case strings.Contains(form, "%%") && len(valuesIn(form)) == 0:
		return strings.ReplaceAll(form, "%%", "%")
	}
	return fmt.Sprintf(form, v.written(append([]any{n}, args...))...)
}

// speaking is the key of the Voice in a context.
type speaking struct{}

// With returns a context in which Of returns the result of voice. It is called when the first
// text is needed.
func With(ctx context.Context, voice func() Voice) context.Context {
	return context.WithValue(ctx, speaking{}, voice)
}

// readers is the key of the function in a context that knows all readers.
type readers struct{}

// WithReaders returns a context in which To knows the people of all chats.
func WithReaders(ctx context.Context, voice func(context.Context, claybot.Descriptor) Voice) context.Context {
	return context.WithValue(ctx, readers{}, voice)
}

// To returns the Voice for a person in a chat, for what a connector says by itself.
func To(ctx context.Context, d claybot.Descriptor) Voice {
	if voice, ok := ctx.Value(readers{}).(func(context.Context, claybot.Descriptor) Voice); ok {
		return voice(ctx, d)
	}
	return Voice{}
}

// Of returns the Voice for the readers of what is said in a context, or the zero Voice.
func Of(ctx context.Context) Voice {
	if voice, ok := ctx.Value(speaking{}).(func() Voice); ok {
		return voice()
	}
	return Voice{}
}
