package webhook

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors"
)

// unread is a body that must not be read.
type unread struct{ t *testing.T }

// Read implements io.Reader.
func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a request that is refused was read")
	return 0, io.EOF
}

// A request whose header has no valid form of a signature is refused before its body is read, and the
// operator can see why.
func TestRefusedUnread(t *testing.T) {
	now := time.Unix(1_900_000_000, 0)
	fresh, stale := fmt.Sprint(now.Unix()), fmt.Sprint(now.Add(-Tolerance-time.Second).Unix())
	standard, bearer := Config{Scheme: Standard, Secret: fakeSecret}, Config{Scheme: Bearer, Secret: "not-a-secret"}
	stripe := Config{Scheme: Stripe, Secret: "not-a-secret"}
	for name, tt := range map[string]struct {
		cfg  Config
		path string
		h    http.Header
		want int
		why  error
	}{
		"standard, nothing":            {standard, "ci", nil, 401, errUnsigned},
		"standard, no id":              {standard, "ci", headers("webhook-timestamp", fresh, "webhook-signature", "v1,AA=="), 401, errUnsigned},
		"standard, old":                {standard, "ci", headers("webhook-id", "m", "webhook-timestamp", stale, "webhook-signature", "v1,AA=="), 401, errStale},
		"stripe, old":                  {stripe, "ci", headers("Stripe-Signature", "t="+stale+",v1=00"), 401, errStale},
		"stripe, nothing":              {stripe, "ci", nil, 401, errUnsigned},
		"github, nothing":              {Config{Scheme: GitHub, Secret: "not-a-secret"}, "ci", nil, 401, errUnsigned},
		"hmac, nothing":                {Config{Scheme: HMAC, Secret: "not-a-secret", Header: "X-Sig"}, "ci", headers("X-Other", "00"), 401, errUnsigned},
		"bearer, nothing":              {bearer, "ci", nil, 401, errUnsigned},
		"bearer, wrong":                {bearer, "ci", headers("Authorization", "Bearer other"), 401, errUnverified},
		"a name that there is not":     {bearer, "cd", headers("Authorization", "Bearer not-a-secret"), 404, nil},
		"a webhook that takes nothing": {Config{Scheme: Bearer}, "ci", nil, 404, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Now = func() time.Time { return now }
			w := start(t, tt.cfg)
			r := httptest.NewRequest(http.MethodPost, "/hooks/"+tt.path, unread{t})
			for k, v := range tt.h {
				r.Header[k] = v
			}
			r.SetPathValue("name", tt.path)
			got := httptest.NewRecorder()
			only(w.c).ServeHTTP(got, r)
			if got.Code != tt.want {
				t.Errorf("%d %s, want %d", got.Code, got.Body, tt.want)
			}
			refused := w.c.Refused()
			if tt.why == nil && refused.Count != 0 || tt.why != nil && (refused.Count != 1 || refused.Why != tt.why.Error() || !refused.At.Equal(now)) {
				t.Errorf("refused: %+v, want %v", refused, tt.why)
			}
			if tt.why != nil && (strings.Contains(got.Body.String(), "clock") || got.Body.String() != fmt.Sprintf(`{"error":{"code":"signature","message":%q}}`+"\n", unverified)) {
				t.Errorf("the sender learns: %s", got.Body)
			}
		})
	}
}

// only serves requests to c alone.
func only(c connectors.Hooked) http.Handler {
	return Hooks(func(name string) (connectors.Hooked, bool) {
		if name != c.Name() {
			return nil, false
		}
		return c, false
	})
}
