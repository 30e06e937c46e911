package dashboard

import (
	"testing"

	"github.com/claybot/claybot/web"
)

// A change that leaves a doubt is not reported as applied.
func TestConfigWords(t *testing.T) {
	made := []web.ConfigChange{{N: 1}}
	for want, out := range map[string]web.ConfigChanged{
		"Applied.":                             {Changes: made},
		"Nothing changed.":                     {},
		"Saved in the file. The token is bad.": {Changes: made, Warnings: []string{"The token is bad."}},
		"Saved. These take effect with a restart: http. Look.": {Changes: made, Restart: []string{"http"}, Warnings: []string{"Look."}},
	} {
		if got := appliedWords(out); got != want {
			t.Errorf("%+v: %q, want %q", out, got, want)
		}
	}
}

// A value in which a secret is hidden is not offered to be written back.
func TestConfigPlain(t *testing.T) {
	for value, want := range map[string]string{"https://a.example/(secret)": "", "[a, (secret)]": "", "plain": "plain"} {
		if got := (configKeyView{configRow: configRow{web.ConfigKey{Kind: "text", Value: value, Text: value}}}).Plain(); got != want {
			t.Errorf("%q is offered as %q", value, got)
		}
	}
}
