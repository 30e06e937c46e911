package dashboard

import (
	"context"
	"errors"
	"net/http/httptest"
	"net/url"
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

// A value that waits for a restart says which one is in force until then; others say nothing.
func TestConfigWaits(t *testing.T) {
	if got := (configRow{web.ConfigKey{Value: "a", Restart: true, InForce: "b"}}).Waits(); got != "Waits for a restart of claybot; until then b is in force." {
		t.Errorf("it says %q", got)
	}
	if got := (configRow{web.ConfigKey{Value: "a"}}).Waits(); got != "" {
		t.Errorf("another one says %q", got)
	}
}

// edits keeps the last change of a configuration.
type edits struct {
	anyConfiguration
	last web.ConfigEdit
}

type anyConfiguration interface{ web.Configuration }

func (e *edits) ChangeConfig(_ context.Context, c web.ConfigEdit) (web.ConfigChanged, error) {
	e.last = c
	return web.ConfigChanged{}, nil
}

// What is typed into a field for a text is no YAML, and a form without a version changes nothing.
func TestConfigForm(t *testing.T) {
	for _, tt := range []struct {
		kind, version string
		text, stale   bool
	}{
		{"text", "1", true, false}, {"word", "1", false, false}, {"list", "1", false, false}, {"group", "1", false, false}, {"text", "", false, true},
	} {
		config := new(edits)
		b := &configPages{config: config}
		r := httptest.NewRequest("POST", "/ui/config/set", nil)
		r.PostForm = url.Values{"key": {"k"}, "value": {` "yes" `}, "kind": {tt.kind}, "version": {tt.version}}
		_, err := b.set(r)
		if errors.Is(err, web.ErrConfigStale) != tt.stale || config.last.Text != tt.text || !tt.stale && (err != nil || *config.last.Value != `"yes"` || config.last.Version != "1") {
			t.Errorf("%+v: %+v, %v", tt, config.last, err)
		}
	}
}
