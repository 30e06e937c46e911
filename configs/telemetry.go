package configs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// OTLP is where traces of runs are sent to.
type OTLP struct {
	// Endpoint is the address of a receiver, to which /v1/traces is added; no
	// slash at the end. Empty: nothing is sent.
	Endpoint string            `key:"endpoint" kind:"url without slash" env:"OTEL_EXPORTER_OTLP_ENDPOINT"`
	Headers  map[string]Secret `key:"headers" kind:"OTLP headers"` // sent with each request
	Interval time.Duration     `key:"interval" class:"harmless" limits:"100ms..1h"`

	faults // why no traces are sent
}

// Wanted reports whether traces are to be sent.
func (o OTLP) Wanted() bool { return o.Endpoint != "" && o.Off() == "" }

// The default and the least OTLP.Interval.
const (
	DefaultExport = 5 * time.Second
	MinExport     = 100 * time.Millisecond
)

// readOTLPHeaders reads name=value pairs with commas between them, as the standard
// variable of OpenTelemetry has them: values are percent-encoded. All of them
// are secrets.
func readOTLPHeaders(r *reader, at place, v string, o *OTLP) {
	headers := make(map[string]Secret)
	for _, it := range commas(at, v) {
		name, value, ok := strings.Cut(it.text, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !headerName(name) || strings.ContainsAny(value, "\r\n\x00") {
			r.warn(at, "one of the headers is not of the form name=value; ignored") // it may hold a secret
			continue
		}
		headers[name] = NewSecret(at.key, value)
	}
	o.Headers = headers
}

func setHeaders(r *reader, at place, n *yaml.Node, to *map[string]Secret) {
	if n.Kind != yaml.MappingNode {
		r.warn(at, "want header names with their values, found %s; ignored", kindOf(n))
		return
	}
	headers := make(map[string]Secret)
	for h := range r.members(at, n) {
		v, ok := r.scalar(h.at, h.value)
		switch {
		case !ok:
		case empty(h.value):
			r.warn(h.at, noValue+"; ignored")
		case !headerName(h.name):
			r.warn(h.at, "%s is not the name of a header; ignored", quote(h.name))
		case strings.HasPrefix(v, "env:") || strings.HasPrefix(v, "file:") || secretive(v) || sensitive(h.name):
			headers[h.name] = r.reference(h.at, v)
		case strings.ContainsAny(v, "\r\n\x00"):
			r.warn(h.at, "the value of a header must be one line; ignored")
		default:
			headers[h.name] = NewSecret(h.at.key, v)
		}
	}
	*to = headers
}

// headerName reports the characters that HTTP allows in a header's name.
func headerName(name string) bool { return plainName.MatchString(name) }

// sensitive reports a header whose value is a secret by its name.
func sensitive(header string) bool {
	header = strings.ToLower(header)
	for _, word := range [...]string{"auth", "key", "token", "secret", "cookie"} {
		if strings.Contains(header, word) {
			return true
		}
	}
	return false
}

// A Relay is where every event of every run is sent.
type Relay struct {
	Name string `key:"name" kind:"name"` // unique; renaming a relay makes it a new one
	// URL and Secret are those of an HTTP receiver.
	URL    string `key:"url" kind:"url"`
	Secret Secret `key:"secret"`
	// File is where events are appended instead, one JSON object on a line.
	File string `key:"file" kind:"file path"`
}

func (s *Relay) fault() string {
	switch {
	case s.Name == "":
		return "has no name"
	case (s.URL == "") == (s.File == ""):
		return "wants either url or file"
	case s.URL != "" && s.Secret.Value() == "":
		return "has no secret, so the receiver cannot verify its requests"
	case s.File != "" && s.Secret.Named():
		return "a file needs no secret"
	}
	return ""
}

// RelayPartial reports whether Telemetry.Relay may lack some, because a warning is about the relays or about a key
// that resembles it.
func (c Config) RelayPartial() bool {
	return slices.ContainsFunc(c.Source.Warnings, Warning.OfRelays)
}

// OfRelays reports whether the warning is about the relays, or about a key that resembles theirs.
func (w Warning) OfRelays() bool {
	return strings.Contains(w.Key, relayKey) || strings.Contains(w.Near, relayKey)
}

// RelayOf returns the name of the relay that a warning leaves out: that of its entry in the file, or its place there, such
// as relay[1]; empty for another warning.
func (c Config) RelayOf(w Warning) string {
	entry, _, _ := strings.Cut(w.Key, ".")
	at, is := strings.CutPrefix(entry, relayKey+"[")
	n, err := strconv.Atoi(strings.TrimSuffix(at, "]"))
	list := valueOf(c.Source.root, relayKey)
	if !is || err != nil || list == nil || n >= len(list.Content) {
		return ""
	}
	if name := valueOf(list.Content[n], "name"); name != nil && name.Kind == yaml.ScalarNode && name.Value != "" {
		return name.Value
	}
	return entry
}

const relayKey = "relay"

func setRelay(r *reader, at place, n *yaml.Node, relay *[]Relay) {
	if list, ok := entries(r, at, n, "relay", (*Relay).fault, func(s Relay) string { return s.Name }); ok {
		*relay = list
	}
}
