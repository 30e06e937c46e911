package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

var now = time.Unix(1_700_000_000, 0)

func made(t *testing.T, cfg Config) scheme {
	t.Helper()
	s, err := newScheme(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// headers makes a header of names and values in turn.
func headers(pairs ...string) http.Header {
	h := make(http.Header)
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// Signatures that others made: that of the Go library of Standard Webhooks
// (libraries/go/webhook_test.go), that of GitHub's documentation ("Testing the webhook
// payload validation"), and one of openssl:
//
//	printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac 'a fake secret for tests'
func TestKnownSignatures(t *testing.T) {
	for _, tt := range []struct {
		cfg  Config
		at   int64
		body string
		h    http.Header
	}{
		{
			Config{Scheme: Standard, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
			1614265330, `{"test": 2432232314}`,
			headers("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp", "1614265330", "webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
		},
		{
			Config{Scheme: GitHub, Secret: "It's a Secret to Everybody"},
			0, "Hello, World!",
			headers("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
		},
		{
			Config{Scheme: Stripe, Secret: "a fake secret for tests"},
			1700000000, `{"id":"evt_1"}`,
			headers("Stripe-Signature", "t=1700000000,v1=44dfc38507adeea1a6dbb24364f3243b353a05f1fcef9ba2d816555ca949582a,v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"),
		},
	} {
		if err := made(t, tt.cfg).verify(tt.h, []byte(tt.body), time.Unix(tt.at, 0)); err != nil {
			t.Errorf("%s: %v", tt.cfg.Scheme, err)
		}
	}
}

func TestVerify(t *testing.T) {
	key := []byte("a key of 24 bytes, a fake")
	standard := made(t, Config{Scheme: Standard, Secret: "whsec_" + base64.StdEncoding.EncodeToString(key)})
	github := made(t, Config{Scheme: GitHub, Secret: "not-a-secret"})
	stripe := made(t, Config{Scheme: Stripe, Secret: "not-a-secret"})
	signer := made(t, Config{Scheme: HMAC, Secret: "not-a-secret", Header: "X-Sig", Prefix: "sha256="})
	bearer := made(t, Config{Scheme: Bearer, Secret: "not-a-secret"})
	body := []byte(`{"a":1}`)
	stamp := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	std := func(id, stamp string, more ...string) http.Header {
		good := "v1," + base64.StdEncoding.EncodeToString(standard.sum(id, stamp, string(body)))
		return headers("webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", strings.Join(append(more, good), " "))
	}
	str := func(stamp string, more string) http.Header {
		return headers("Stripe-Signature", "t="+stamp+","+more+"v1="+hex.EncodeToString(stripe.sum(stamp, string(body))))
	}
	without := func(h http.Header, name string) http.Header { h.Del(name); return h }
	with := func(h http.Header, name, value string) http.Header { h.Add(name, value); return h }
	sig := hex.EncodeToString(github.sum(string(body)))
	const wrong = "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc="
	for name, tt := range map[string]struct {
		s    scheme
		h    http.Header
		good bool
	}{
		"standard":                          {standard, std("m1", stamp(0)), true},
		"standard, two of which one":        {standard, std("m1", stamp(0), wrong, "v1a,xx"), true},
		"standard, just in time":            {standard, std("m1", stamp(-Tolerance)), true},
		"standard, clock ahead":             {standard, std("m1", stamp(Tolerance)), true},
		"standard, past":                    {standard, std("m1", stamp(-Tolerance-time.Second)), false},
		"standard, future":                  {standard, std("m1", stamp(Tolerance+time.Second)), false},
		"standard, no number":               {standard, std("m1", "now"), false},
		"standard, far future":              {standard, std("m1", "9223372036854775807"), false},
		"standard, negative":                {standard, std("m1", "-1700000000"), false},
		"standard, no id":                   {standard, std("", stamp(0)), false},
		"standard, another id":              {standard, with(without(std("m1", stamp(0)), "webhook-id"), "webhook-id", "m2"), false},
		"standard, no timestamp":            {standard, without(std("m1", stamp(0)), "webhook-timestamp"), false},
		"standard, two timestamps":          {standard, with(std("m1", stamp(0)), "webhook-timestamp", stamp(0)), false},
		"standard, no signature":            {standard, without(std("m1", stamp(0)), "webhook-signature"), false},
		"standard, wrong alone":             {standard, headers("webhook-id", "m1", "webhook-timestamp", stamp(0), "webhook-signature", wrong), false},
		"standard, empty signature":         {standard, headers("webhook-id", "m1", "webhook-timestamp", stamp(0), "webhook-signature", "v1,"), false},
		"standard, the last of very many":   {standard, std("m1", stamp(0), strings.Fields(strings.Repeat(wrong+" ", maxSignatures))...), false},
		"standard, the headers of GitHub":   {standard, headers("X-Hub-Signature-256", "sha256="+sig), false},
		"standard, the header of Stripe":    {standard, str(stamp(0), ""), false},
		"standard, nothing":                 {standard, nil, false},
		"github":                            {github, headers("X-Hub-Signature-256", "sha256="+sig), true},
		"github, no prefix":                 {github, headers("X-Hub-Signature-256", sig), false},
		"github, the old signature":         {github, headers("X-Hub-Signature", "sha1="+sig), false},
		"github, base64":                    {github, headers("X-Hub-Signature-256", "sha256="+base64.StdEncoding.EncodeToString(github.sum(string(body)))), false},
		"github, twice":                     {github, headers("X-Hub-Signature-256", "sha256="+sig, "X-Hub-Signature-256", "sha256="+sig), false},
		"github, the headers of standard":   {github, std("m1", stamp(0)), false},
		"stripe":                            {stripe, str(stamp(0), ""), true},
		"stripe, two of which one":          {stripe, str(stamp(0), "v1=00ff,"), true},
		"stripe, past":                      {stripe, str(stamp(-Tolerance-time.Second), ""), false},
		"stripe, future":                    {stripe, str(stamp(Tolerance+time.Second), ""), false},
		"stripe, another time":              {stripe, headers("Stripe-Signature", strings.Replace(str(stamp(0), "").Get("Stripe-Signature"), stamp(0), stamp(time.Second), 1)), false},
		"stripe, an old version":            {stripe, headers("Stripe-Signature", strings.Replace(str(stamp(0), "").Get("Stripe-Signature"), "v1=", "v0=", 1)), false},
		"hmac, hexadecimal":                 {signer, headers("X-Sig", "sha256="+sig), true},
		"hmac, base64":                      {signer, headers("X-Sig", "sha256="+base64.StdEncoding.EncodeToString(signer.sum(string(body)))), true},
		"hmac, no prefix":                   {signer, headers("X-Sig", sig), false},
		"hmac, another header":              {signer, headers("X-Hub-Signature-256", "sha256="+sig), false},
		"bearer":                            {bearer, headers("Authorization", "Bearer not-a-secret"), true},
		"bearer, lower case":                {bearer, headers("Authorization", "bearer not-a-secret"), true},
		"bearer, wrong":                     {bearer, headers("Authorization", "Bearer not-a-secrets"), false},
		"bearer, empty":                     {bearer, headers("Authorization", "Bearer "), false},
		"bearer, basic":                     {bearer, headers("Authorization", "Basic not-a-secret"), false},
		"no scheme":                         {scheme{}, std("m1", stamp(0)), false},
		"a scheme without a key":            {scheme{name: Bearer}, headers("Authorization", "Bearer "), false},
		"a signature scheme without a key":  {scheme{name: GitHub}, headers("X-Hub-Signature-256", "sha256="+hex.EncodeToString(scheme{}.sum(string(body)))), false},
		"standard, body and stamp shifted":  {standard, headers("webhook-id", "m1", "webhook-timestamp", stamp(0)+".", "webhook-signature", wrong), false},
		"stripe, the header is not a list":  {stripe, headers("Stripe-Signature", "v1"), false},
		"github, the body was changed":      {github, headers("X-Hub-Signature-256", "sha256="+hex.EncodeToString(github.sum(`{"a":2}`))), false},
		"standard, signature of other body": {standard, headers("webhook-id", "m1", "webhook-timestamp", stamp(0), "webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(standard.sum("m1", stamp(0), `{"a":2}`))), false},
	} {
		if err := tt.s.verify(tt.h, body, now); (err == nil) != tt.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A secret that cannot sign is refused, in words without it.
func TestBadSecrets(t *testing.T) {
	for _, cfg := range []Config{
		{Scheme: Standard},
		{Scheme: GitHub},
		{Scheme: Bearer},
		{Scheme: HMAC, Secret: "not-a-secret"},
		{Scheme: Standard, Secret: "whsec_***"},
		{Scheme: Standard, Secret: "whsec_"},
	} {
		s, err := newScheme(cfg)
		if err == nil || s.verify(nil, nil, now) == nil || cfg.Secret != "" && strings.Contains(err.Error(), cfg.Secret) && cfg.Secret != "whsec_" {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A repeat has the id of what it repeats; what is not signed cannot give it another one.
func TestIdentify(t *testing.T) {
	body := []byte(`{"id":"evt_1"}`)
	const hash = "sha256-"
	for _, tt := range []struct {
		cfg  Config
		h    http.Header
		want string // "hash" for that of the body
		more int
	}{
		{Config{Scheme: Standard, Secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, headers("webhook-id", "msg_1"), "msg_1", 0},
		{Config{Scheme: GitHub, Secret: "x"}, headers("X-GitHub-Delivery", "72d3162e"), "72d3162e", 1},
		{Config{Scheme: GitHub, Secret: "x"}, nil, "hash", 1},
		{Config{Scheme: Stripe, Secret: "x"}, nil, "evt_1", 0},
		{Config{Scheme: HMAC, Secret: "x", Header: "X-Sig"}, headers("webhook-id", "msg_1"), "hash", 0},
		{Config{Scheme: Bearer, Secret: "x", IDHeader: "X-Request-Id"}, headers("X-Request-Id", "7"), "7", 0},
		{Config{Scheme: Bearer, Secret: "x", IDHeader: "X-Request-Id"}, headers("X-Request-Id", "a b"), "id-sha256-c8687a08aa5d6ed2044328fa6a697ab8e96dc34291e8c2034ae8c38e6fcc6d65", 0},
		{Config{Scheme: Bearer, Secret: "x", IDHeader: "X-Request-Id"}, headers("X-Request-Id", strings.Repeat("a", maxID+1)), "long", 0},
		{Config{Scheme: Standard, Secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, headers("webhook-id", strings.Repeat("a", maxID+1)), "long", 0},
		{Config{Scheme: Bearer, Secret: "x", IDHeader: "X-Request-Id"}, nil, "hash", 0},
	} {
		id, more := made(t, tt.cfg).identify(tt.h, body)
		if tt.want == "hash" && strings.HasPrefix(id, hash) && len(id) == 7+64 {
			id = "hash"
		}
		if sum := sha256.Sum256([]byte(strings.Repeat("a", maxID+1))); id == "id-sha256-"+hex.EncodeToString(sum[:]) {
			id = "long"
		}
		if id != tt.want || len(more) != tt.more {
			t.Errorf("%+v %v: %q, %q", tt.cfg, tt.h, id, more)
		}
	}
}

// prove adds the headers by which a sender of the scheme proves that it knows the secret.
func prove(s scheme, h http.Header, id string, body []byte, now time.Time) {
	h.Set(idHeader, id)
	stamp := strconv.FormatInt(now.Unix(), 10)
	switch s.name {
	case Standard:
		s.sign(h, id, body, now)
	case Stripe:
		h.Set(stripeSignature, "t="+stamp+",v1="+hex.EncodeToString(s.sum(stamp, string(body))))
	case GitHub:
		h.Set(githubDelivery, id)
		h.Set(githubSignature, githubMark+hex.EncodeToString(s.sum(string(body))))
	case HMAC:
		h.Set(s.header, s.prefix+hex.EncodeToString(s.sum(string(body))))
	case Bearer:
		h.Set("Authorization", "Bearer "+string(s.key))
	}
}

// What a sender of a scheme signs, it verifies.
func TestSign(t *testing.T) {
	body := []byte(`{"text":"done"}`)
	for _, cfg := range []Config{
		{Scheme: Standard, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		{Scheme: GitHub, Secret: "x"},
		{Scheme: Stripe, Secret: "x"},
		{Scheme: HMAC, Secret: "x", Header: "X-Sig", Prefix: "v="},
		{Scheme: Bearer, Secret: "x"},
	} {
		s, h := made(t, cfg), make(http.Header)
		prove(s, h, "out_1", body, now)
		if err := s.verify(h, body, now); err != nil || h.Get("webhook-id") != "out_1" {
			t.Errorf("%s: %v, %v", cfg.Scheme, err, h)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("m1", "1700000000", "v1,AAAA", []byte(`{}`))
	f.Add("m1.1700000000", "", "v1, v1,", []byte(nil))
	f.Fuzz(func(t *testing.T, id, stamp, signature string, body []byte) {
		s, err := newScheme(Config{Scheme: Standard, Secret: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
		if err != nil {
			t.Fatal(err)
		}
		h := headers("webhook-id", id, "webhook-timestamp", stamp, "webhook-signature", signature)
		if s.verify(h, body, now) == nil && !strings.Contains(signature, base64.StdEncoding.EncodeToString(s.sum(strings.TrimSpace(id), strings.TrimSpace(stamp), string(body)))) {
			t.Errorf("accepted %q", signature)
		}
	})
}
