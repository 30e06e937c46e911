package configs

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/platforms"
)

// The schemes of webhooks.
const (
	SchemeStandard = "standard"
	SchemeHMAC     = "hmac"
)

// DefaultMaxBody is the largest body of a webhook by default, in bytes.
const DefaultMaxBody = 1 << 20

// Webhook are the settings of a webhook.
type Webhook struct {
	// Scheme is how requests prove that their sender knows the secret.
	Scheme string `key:"scheme" words:"standard,github,stripe,hmac,bearer"`
	Secret Secret `key:"secret"`
	// Header and Prefix are where the scheme hmac has its signature, and IDHeader has the id
	// of a request in the schemes hmac and bearer.
	Header   string `key:"header" kind:"header"`
	Prefix   string `key:"prefix"`
	IDHeader string `key:"id_header" kind:"header"`
	// Prompt and Channel are templates; empty: the defaults.
	Prompt  string `key:"prompt"`
	Channel string `key:"channel"`
	// Route is "connector/channel" where answers go instead of the Callback.
	Route    string `key:"route" kind:"route"`
	Callback string `key:"callback" kind:"url"`
	// CallbackSecret signs what goes to the Callback, as Standard Webhooks.
	CallbackSecret Secret `key:"callback_secret"`
	MaxBody        int64  `key:"max_body" class:"narrowing" kind:"size" limits:"1k..32m"`

	faults // why the connector must not run
}

func plainWebhook() Webhook { return Webhook{Scheme: SchemeStandard, MaxBody: DefaultMaxBody} }

// Type implements ConnectorSettings.
func (Webhook) Type() string { return platforms.Webhook }

// Wanted implements ConnectorSettings.
func (Webhook) Wanted() bool { return true }

// standardKey is a secret of Standard Webhooks.
var standardKey = lazyregexp.New(`^(whsec_)?([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)$`)

// Credentials implements ConnectorSettings.
func (w Webhook) Credentials() []Credential {
	c := Credential{Key: "secret", Value: w.Secret, Where: "take it from the sender of the webhook, or make one with: openssl rand -base64 32"}
	if w.Scheme == SchemeStandard {
		c.Form = standardKey
	}
	if w.Callback == "" && !w.CallbackSecret.Named() {
		return []Credential{c}
	}
	return []Credential{c, {Key: "callback_secret", Value: w.CallbackSecret, Form: standardKey, Where: "make one with: echo whsec_$(openssl rand -base64 32)"}}
}

// Accounts implements ConnectorSettings. Webhooks may share a secret: each has an address of
// its own.
func (Webhook) Accounts() []string { return nil }

// fault says what is wrong with the keys together.
func (w Webhook) fault() string {
	switch {
	case w.Scheme == SchemeHMAC && w.Header == "":
		return "the scheme hmac has no header"
	case w.Scheme != SchemeHMAC && (w.Header != "" || w.Prefix != ""):
		return "header and prefix are for the scheme hmac, not " + w.Scheme
	case w.Route != "" && w.Callback != "":
		return "has a route and a callback; keep one of the two"
	case w.Callback != "" && !w.CallbackSecret.Named():
		return "has a callback but no callback_secret, which signs what goes there; set callback_secret: env:NAME"
	case w.CallbackSecret.Value() != "" && bareKey(w.CallbackSecret) == bareKey(w.Secret):
		return "secret and callback_secret are the same, so that a callback could be sent back as an event; make another callback_secret"
	case exposed(w.Callback):
		return "callback is http:// to another machine; want https://"
	}
	return ""
}

// bareKey is the value of a secret without the mark of Standard Webhooks.
func bareKey(s Secret) string { return strings.TrimPrefix(s.Value(), "whsec_") }

// exposed reports whether an address would send a callback to another machine in clear text.
func exposed(callback string) bool {
	u, err := url.Parse(callback)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	return u.Hostname() != "localhost" && !ip.IsLoopback()
}
