package webhook

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// The schemes, by which a sender proves that it knows the secret.
const (
	// Standard is that of Standard Webhooks 1.0.0 (github.com/standard-webhooks,
	// spec/standard-webhooks.md, read 2026-11-28): webhook-id, webhook-timestamp and
	// webhook-signature, a list of "v1,<base64>" over "<id>.<timestamp>.<body>".
	Standard = "standard"
	// GitHub is that of GitHub (docs.github.com, "Validating webhook deliveries", read
	// 2026-11-28): X-Hub-Signature-256, "sha256=<hex>" over the body.
	GitHub = "github"
	// Stripe is that of Stripe (docs.stripe.com, "Verify webhook signatures manually", read
	// 2026-11-28): Stripe-Signature, "t=<timestamp>,v1=<hex>", over "<timestamp>.<body>".
	Stripe = "stripe"
	// HMAC is a signature over the body, hexadecimal or base64, in a header with a prefix.
	HMAC = "hmac"
	// Bearer is the secret itself, in the header Authorization.
	Bearer = "bearer"
)

// Tolerance is how far the timestamp of a request may be from this machine's clock, in
// both directions, where the scheme has one.
const Tolerance = 5 * time.Minute

// The headers of the schemes.
const (
	idHeader        = "webhook-id"
	timestampHeader = "webhook-timestamp"
	signatureHeader = "webhook-signature"
	githubSignature = "X-Hub-Signature-256"
	githubDelivery  = "X-GitHub-Delivery"
	githubEvent     = "X-GitHub-Event"
	stripeSignature = "Stripe-Signature"
)

const (
	standardSecret = "whsec_"
	standardMark   = "v1,"
	githubMark     = "sha256="
)

// maxSignatures is how many signatures of a request are looked at.
const maxSignatures = 16

// Errors of a request that the holder of the secret did not send, or not now.
var (
	errUnsigned   = errors.New("it has no signature where the scheme expects it")
	errStale      = fmt.Errorf("its timestamp is missing or more than %v from the clock of this machine", Tolerance)
	errUnverified = errors.New("its signature does not match the secret")
)

// Errors of bodies.
var (
	errEmpty  = errors.New("the body is empty")
	errNoText = errors.New("the body is not text in UTF-8")
)

// A scheme verifies requests and signs them. The zero scheme verifies nothing.
type scheme struct {
	name           string
	key            []byte
	header, prefix string // of HMAC
	idHeader       string // of HMAC and Bearer; empty: the id is derived from the body
}

// newScheme returns the scheme of a configuration. The error is for operators and has no
// part of the secret.
func newScheme(cfg Config) (scheme, error) {
	s := scheme{name: cfg.Scheme, key: []byte(cfg.Secret), header: cfg.Header, prefix: cfg.Prefix, idHeader: cfg.IDHeader}
	switch {
	case cfg.Secret == "":
		return scheme{}, errors.New("there is no secret")
	case s.name == HMAC && s.header == "":
		return scheme{}, errors.New("the scheme hmac has no header")
	case s.name == Standard:
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(cfg.Secret, standardSecret))
		if err != nil || len(key) == 0 {
			return scheme{}, fmt.Errorf("the secret is malformed: want %s and base64", standardSecret)
		}
		s.key = key
	}
	return s, nil
}

// sum is the HMAC-SHA256 of the parts with dots between them.
func (s scheme) sum(parts ...string) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(strings.Join(parts, ".")))
	return m.Sum(nil)
}

// precheck returns what the header alone says against a request; the body is not worth reading
// then.
func (s scheme) precheck(h http.Header, now time.Time) error {
	given, stamp, stamped := "", "", false
	switch s.name {
	case Standard:
		given, stamp, stamped = alone(h, signatureHeader), alone(h, timestampHeader), true
		if alone(h, idHeader) == "" {
			return errUnsigned
		}
	case Stripe:
		given, stamped = alone(h, stripeSignature), true
		stamp, _ = stripeParts(given)
	case GitHub:
		given = alone(h, githubSignature)
	case HMAC:
		given = alone(h, s.header)
	case Bearer:
		if given = alone(h, "Authorization"); given != "" {
			return s.verify(h, nil, now)
		}
	}
	switch {
	case given == "":
		return errUnsigned
	case stamped && !fresh(stamp, now):
		return errStale
	}
	return nil
}

// verify returns errUnverified unless the request was signed with the secret, within the
// Tolerance of now where the scheme has timestamps.
func (s scheme) verify(h http.Header, body []byte, now time.Time) error {
	good := false
	switch s.name {
	case Standard:
		id, stamp := alone(h, idHeader), alone(h, timestampHeader)
		want := s.sum(id, stamp, string(body))
		for i, given := range strings.Fields(alone(h, signatureHeader)) {
			text, ok := strings.CutPrefix(given, standardMark)
			sum, err := base64.StdEncoding.DecodeString(text)
			good = good || ok && err == nil && i < maxSignatures && hmac.Equal(sum, want)
		}
		good = good && id != "" && fresh(stamp, now)
	case Stripe:
		stamp, all := stripeParts(alone(h, stripeSignature))
		want := s.sum(stamp, string(body))
		for _, sum := range all {
			good = good || hmac.Equal(sum, want)
		}
		good = good && fresh(stamp, now)
	case GitHub:
		good = s.signs(alone(h, githubSignature), githubMark, body)
	case HMAC:
		good = s.signs(alone(h, s.header), s.prefix, body)
	case Bearer:
		word, token, _ := strings.Cut(alone(h, "Authorization"), " ")
		given, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256(s.key) // of one length
		good = strings.EqualFold(word, "bearer") && hmac.Equal(given[:], want[:])
	}
	if !good || len(s.key) == 0 {
		return errUnverified
	}
	return nil
}

// signs reports whether a value is the signature of a body, in either notation.
func (s scheme) signs(value, prefix string, body []byte) bool {
	text, ok := strings.CutPrefix(value, prefix)
	want := s.sum(string(body))
	sum, err := hex.DecodeString(text)
	if err != nil && s.name == HMAC {
		sum, err = base64.StdEncoding.DecodeString(text)
	}
	return ok && err == nil && hmac.Equal(sum, want)
}

// stripeParts reads the timestamp and the signatures of a header of Stripe.
func stripeParts(value string) (stamp string, all [][]byte) {
	for part := range strings.SplitSeq(value, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			stamp = v
		case "v1":
			if sum, err := hex.DecodeString(v); err == nil && len(all) < maxSignatures {
				all = append(all, sum)
			}
		}
	}
	return stamp, all
}

// alone is the value of a header that is there once; empty otherwise.
func alone(h http.Header, name string) string {
	if all := h.Values(name); len(all) == 1 {
		return strings.TrimSpace(all[0])
	}
	return ""
}

// fresh reports whether a timestamp in Unix seconds is within the Tolerance.
func fresh(stamp string, now time.Time) bool {
	n, err := strconv.ParseInt(stamp, 10, 64)
	return err == nil && n > 0 && n < 1<<40 && now.Sub(time.Unix(n, 0)).Abs() <= Tolerance
}

// identify returns the id of a verified request, by which a repeat is known, and a second
// one where the sender's id is not signed: that of the body.
func (s scheme) identify(h http.Header, body []byte) (id string, more []string) {
	sum := sha256.Sum256(body)
	hash := "sha256-" + hex.EncodeToString(sum[:])
	given := ""
	switch s.name {
	case Standard:
		return clean(alone(h, idHeader), hash), nil
	case GitHub:
		return clean(alone(h, githubDelivery), hash), []string{hash}
	case Stripe:
		var event struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal(body, &event) // without one, the body is its id
		given = event.ID
	case HMAC, Bearer:
		if s.idHeader != "" {
			given = alone(h, s.idHeader)
		}
	}
	return clean(given, hash), nil
}

// maxID is the longest id of a sender that is kept as it is, in bytes.
const maxID = 200

// clean returns an id of a sender as a part of a message id: the hash of one that cannot be, and the
// hash of the body where there is none.
func clean(id, hash string) string {
	if len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		sum := sha256.Sum256([]byte(id))
		return "id-sha256-" + hex.EncodeToString(sum[:])
	}
	return cmp.Or(id, hash)
}

// sign adds the headers by which a receiver of Standard Webhooks knows that a request with an
// id and a body comes from here.
func (s scheme) sign(h http.Header, id string, body []byte, now time.Time) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(idHeader, id)
	h.Set(timestampHeader, stamp)
	h.Set(signatureHeader, standardMark+base64.StdEncoding.EncodeToString(s.sum(id, stamp, string(body))))
}

// payload returns what a template sees of a body: the value of a JSON text, that of the
// field payload of a form, or the text itself. The error is for the sender.
func payload(kind string, body []byte) (any, error) {
	if strings.HasPrefix(kind, "application/x-www-form-urlencoded") {
		if inner, ok := formPayload(body); ok {
			body = inner
		}
	}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return nil, errEmpty
	case strings.ToValidUTF8(string(body), "") != string(body):
		return nil, errNoText
	}
	if !json.Valid(body) {
		return string(body), nil
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(body), nil
	}
	return v, nil
}

// formPayload is how GitHub and others send JSON where they are told to send a form.
func formPayload(body []byte) ([]byte, bool) {
	form, err := url.ParseQuery(string(body))
	if err != nil || !form.Has("payload") {
		return nil, false
	}
	return []byte(form.Get("payload")), true
}
