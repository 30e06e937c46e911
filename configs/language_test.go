package configs_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/texts"
)

// The setting language takes the languages of the catalogue.
func TestLanguageWords(t *testing.T) {
	var all []string
	for _, l := range texts.All() {
		all = append(all, string(l))
	}
	field, _ := reflect.TypeFor[configs.Config]().FieldByName("Language")
	if words := field.Tag.Get("words"); words != strings.Join(all, ",") {
		t.Errorf("the setting takes %q, the catalogue has %q", words, all)
	}
	for _, l := range all {
		if _, ok := (configs.Texts{}).By()[l]; !ok {
			t.Errorf("the setting texts has no %s", l)
		}
	}
}

// A text that claybot does not have, or that lacks a value, is a warning with its line and the nearest id; the others hold.
func TestTexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.yaml")
	text := `texts:
  en:
    stopped-2: It is over.
    nothing-is-runing: Idle.
    hello-i-dont-know-you-yet-your-pairing-code-is: Ask Ann.
    i-am-waiting-for-you: |
      Yes?
      No?
  de:
    stopped-2: [a]
    nothing-is-running: Leerlauf
  fr: {stopped-2: Fini}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, warnings, err := configs.Load(path, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range append(warnings, c.WrongTexts(texts.IDs, texts.Replaceable)...) {
		all = append(all, strings.TrimPrefix(w.String(), path+":"))
	}
	want := []string{
		"10: texts.de.stopped-2: want a single value, found a list; ignored",
		"12: texts.fr: unknown key; ignored",
		"4: texts.en.nothing-is-runing: there is no text with this id; ignored; did you mean nothing-is-running?",
		"5: texts.en.hello-i-dont-know-you-yet-your-pairing-code-is: the text needs the values %[1]s, and has none; ignored",
	}
	if !slices.Equal(all, want) {
		t.Errorf("warnings %q", all)
	}
	by := map[string]map[string]string{"en": {"stopped-2": "It is over.", "i-am-waiting-for-you": "Yes?\nNo?"}, "de": {"nothing-is-running": "Leerlauf"}}
	if !reflect.DeepEqual(c.Texts.By(), by) {
		t.Errorf("texts %q", c.Texts.By())
	}
}
