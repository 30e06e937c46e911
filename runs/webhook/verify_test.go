package webhook_test

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/runs/webhook"
)

var now = time.Unix(1_700_000_000, 0)

func signed(stamp string, body []byte) http.Header {
	h := make(http.Header)
	h.Set(webhook.TimestampHeader, stamp)
	h.Set(webhook.SignatureHeader, webhook.Sign(secret, stamp, body))
	return h
}

// The signature of a known request, made with another program:
//
//	printf '1700000000.{"events":[]}' | openssl dgst -sha256 -hmac 'a fake secret for tests'
func TestKnownSignature(t *testing.T) {
	const want = "v1=fe8969f0bfcd00ff26c3c0f7c59fdcb832b4d51f6e6356d546d4e2736fa39803"
	if got := webhook.Sign(secret, "1700000000", []byte(`{"events":[]}`)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	const tolerance = 5 * time.Minute
	body := []byte(`{"events":[]}`)
	stamp := strconv.FormatInt(now.Unix(), 10)
	at := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	change := func(name, value string) http.Header {
		h := signed(stamp, body)
		h.Set(name, value)
		return h
	}
	good := webhook.Sign(secret, stamp, body)
	twice := signed(stamp, body)
	twice.Add(webhook.SignatureHeader, good)
	stamps := signed(stamp, body)
	stamps.Add(webhook.TimestampHeader, stamp)
	tests := map[string]struct {
		secret string
		header http.Header
		body   []byte
		want   error
	}{
		"good":                {secret, signed(stamp, body), body, nil},
		"empty body":          {secret, signed(stamp, nil), nil, nil},
		"just in time":        {secret, signed(at(-tolerance), body), body, nil},
		"clock ahead":         {secret, signed(at(tolerance), body), body, nil},
		"late":                {secret, signed(at(-tolerance-time.Second), body), body, webhook.ErrStale},
		"future":              {secret, signed(at(tolerance+time.Second), body), body, webhook.ErrStale},
		"far future":          {secret, signed("9223372036854775807", body), body, webhook.ErrStale},
		"negative":            {secret, signed("-1700000000", body), body, webhook.ErrStale},
		"no number":           {secret, signed("now", body), body, webhook.ErrStale},
		"too large":           {secret, signed("99999999999999999999", body), body, webhook.ErrStale},
		"other secret":        {secret + "x", signed(stamp, body), body, webhook.ErrSignature},
		"empty secret":        {"", signed(stamp, body), body, webhook.ErrSignature},
		"body swapped":        {secret, signed(stamp, body), []byte(`{"events":[1]}`), webhook.ErrSignature},
		"stamp swapped":       {secret, change(webhook.TimestampHeader, at(time.Second)), body, webhook.ErrSignature},
		"dot moved":           {secret, change(webhook.TimestampHeader, stamp+"."), body, webhook.ErrSignature},
		"no header":           {secret, http.Header{}, body, webhook.ErrSignature},
		"no header at all":    {secret, nil, body, webhook.ErrSignature},
		"no scheme":           {secret, change(webhook.SignatureHeader, strings.TrimPrefix(good, "v1=")), body, webhook.ErrSignature},
		"other scheme":        {secret, change(webhook.SignatureHeader, "v2="+strings.TrimPrefix(good, "v1=")), body, webhook.ErrSignature},
		"empty signature":     {secret, change(webhook.SignatureHeader, "v1="), body, webhook.ErrSignature},
		"half a signature":    {secret, change(webhook.SignatureHeader, good[:35]), body, webhook.ErrSignature},
		"more than one":       {secret, twice, body, webhook.ErrSignature},
		"two stamps":          {secret, stamps, body, webhook.ErrSignature},
		"signature in base64": {secret, change(webhook.SignatureHeader, "v1=c2lnbmF0dXJl"), body, webhook.ErrSignature},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if err := webhook.Verify(tt.secret, tt.header, tt.body, now, tolerance); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// FuzzVerify changes signed requests: what is accepted is what was signed.
func FuzzVerify(f *testing.F) {
	body := []byte(`{"events":[]}`)
	stamp := strconv.FormatInt(now.Unix(), 10)
	good := webhook.Sign(secret, stamp, body)
	f.Add(stamp, good, body)
	f.Add(stamp, strings.ToUpper(good), body)
	f.Add(stamp+".", good, []byte("."))
	f.Add("", "v1=", []byte(nil))
	f.Add("-1", "v1=zz", []byte("x"))
	f.Add("9223372036854775807", good, body)
	f.Fuzz(func(t *testing.T, stamp, signature string, body []byte) {
		h := http.Header{webhook.TimestampHeader: {stamp}, webhook.SignatureHeader: {signature}}
		err := webhook.Verify(secret, h, body, now, time.Minute)
		if err != nil {
			if !errors.Is(err, webhook.ErrSignature) && !errors.Is(err, webhook.ErrStale) {
				t.Fatalf("another error: %v", err)
			}
			return
		}
		n, parse := strconv.ParseInt(stamp, 10, 64)
		if parse != nil || n < now.Unix()-60 || n > now.Unix()+60 {
			t.Fatalf("accepted at %q", stamp)
		}
		if !strings.EqualFold(signature, webhook.Sign(secret, stamp, body)) {
			t.Fatalf("accepted %q for %q", signature, body)
		}
	})
}
