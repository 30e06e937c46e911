package configs_test

import (
	"reflect"
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
}
