package connectors_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

// The example says truthfully how a send ended: a copy of it would lose
// messages, or send them twice, if it did not.
func TestExampleSendFaults(t *testing.T) {
	var (
		ambiguous *connectors.AmbiguousError
		permanent *connectors.PermanentError
		retry     *connectors.RetryError
	)
	for name, c := range map[string]struct {
		status int
		body   string
		cut    bool // the connection ends behind body
		want   any
	}{
		"cut":          {200, `{"ID":"8`, true, &ambiguous},
		"empty":        {200, "", false, &ambiguous},
		"unreadable":   {200, "<html>", false, &ambiguous},
		"another form": {200, `{"ID":8}`, false, &ambiguous},
		"without id":   {200, `{}`, false, &ambiguous},
		"null":         {200, `null`, false, &ambiguous},
		"not changed":  {304, "", false, &ambiguous},
		"failed":       {500, "", false, &ambiguous},
		"too many":     {429, "", false, &retry},
		"refused":      {400, "", false, &permanent},
	} {
		t.Run(name, func(t *testing.T) {
			platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.cut {
					w.Header().Set("Content-Length", "100")
				}
				w.WriteHeader(c.status)
				if _, err := w.Write([]byte(c.body)); err != nil && c.body != "" {
					t.Error(err)
				}
			}))
			defer platform.Close()
			pager := &Pager{URL: platform.URL}
			if _, err := pager.Send(t.Context(), claybot.Outgoing{Text: "x"}); !errors.As(err, c.want) {
				t.Errorf("got %T %v, want %T", err, err, c.want)
			}
		})
	}
}
