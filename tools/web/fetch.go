package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// maxAddress is the longest address that is fetched, in bytes.
const maxAddress = 8 << 10

type fetcher struct {
	client *http.Client
	listed func(tools.Env, string) bool
	pace   *pace
}

type fetchInput struct {
	URL      string `json:"url" jsonschema:"the whole address, beginning with https:// or http://"`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"the most bytes of text to return; the whole page when absent"`
	Raw      bool   `json:"raw,omitempty" jsonschema:"true returns HTML as it is instead of as Markdown"`
}

func (f *fetcher) tool() tools.Tool {
	spec := tools.Spec{
		Tool: llm.Tool{
			Name: "fetch_url",
			Description: "Fetches one page of the web with GET and returns its text: HTML as Markdown, other text as it is. " +
				"At most 5 MiB in 20 seconds; pictures and other binary files cannot be read. " +
				"The first lines of the result say the final address, the status and the type.",
		},
		Effect:  tools.ReadOnly,
		Public:  true,
		Timeout: fetchLimit + 10*time.Second, // for making Markdown of it
		Scopes:  []string{tools.ScopeWeb},
		Class:   tools.Outward,
		Subject: subject, PerSubject: true,
		Batch: func(history []claybot.Record, args json.RawMessage) tools.Batch {
			var in fetchInput
			_ = json.Unmarshal(args, &in) // what does not fit is refused before
			return tools.FoundBy(history, searchName, strings.TrimSpace(in.URL))
		},
	}
	if f.listed != nil {
		spec.Listed = func(env tools.Env, args json.RawMessage) bool {
			var in fetchInput
			return json.Unmarshal(args, &in) == nil && f.listed(env, strings.TrimSpace(in.URL))
		}
	}
	return tools.New(spec, f.fetch)
}

func subject(args json.RawMessage) string {
	var in fetchInput
	if json.Unmarshal(args, &in) != nil {
		return ""
	}
	host, err := egress.HostOf(strings.TrimSpace(in.URL))
	if err != nil {
		return ""
	}
	return host
}

func (f *fetcher) fetch(ctx context.Context, env tools.Env, in fetchInput) (tools.Result, error) {
	in.URL = strings.TrimSpace(in.URL)
	if in.MaxBytes < 0 {
		return tools.Result{}, &tools.Fault{Code: tools.FaultArguments, Text: "field max_bytes: want 1 or more"}
	}
	if err := checkAddress(in.URL); err != nil {
		return tools.Result{}, err
	}
	if err := f.pace.take(env.Agent.ID); err != nil {
		return tools.Result{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, in.URL, nil)
	if err != nil {
		return tools.Result{}, fault(err)
	}
	req.URL.Fragment, req.URL.RawFragment = "", ""
	req.Header.Set("User-Agent", "claybot (+https://github.com/claybot/claybot)")
	req.Header.Set("Accept", "text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5")
	resp, err := f.following(env).Do(req)
	if err != nil {
		return tools.Result{}, faultOf(err, in.URL)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxFetch+1))
	if err != nil {
		return tools.Result{}, fault(err)
	}
	return tools.Result{Text: report(resp, data, in), Untrusted: true}, nil
}

// checkAddress refuses what is no address, before it costs anything.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case len(address) > maxAddress:
		err = fmt.Errorf("it is longer than %d bytes", maxAddress)
	case err != nil:
		err = fmt.Errorf("it cannot be read")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		err = fmt.Errorf("it does not begin with https:// or http://")
	}
	if err != nil {
		return &tools.Fault{Code: faultAddress, Text: "field url: this is not a web address: " + err.Error()}
	}
	return nil
}

// following is the client that follows redirects as far as the rules for this call
// reach.
func (f *fetcher) following(env tools.Env) *http.Client {
	if f.listed == nil {
		return f.client
	}
	c := *f.client
	c.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if err := f.client.CheckRedirect(next, via); err != nil {
			return err
		}
		address := next.URL.String()
		to, err := egress.HostOf(address)
		if err != nil {
			return err
		}
		from, err := egress.HostOf(via[len(via)-1].URL.String())
		if err != nil {
			return err
		}
		if to != from && !f.listed(env, address) {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &c
}

func report(resp *http.Response, data []byte, in fetchInput) string {
	whole := len(data) <= maxFetch
	data = data[:min(len(data), maxFetch)]
	kind, text := read(resp, data, in.Raw)
	var b strings.Builder
	fmt.Fprintf(&b, "address: %s\nstatus: %d %s\ntype: %s\n", visible(resp.Request.URL.String()), resp.StatusCode, http.StatusText(resp.StatusCode), kind)
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		fmt.Fprintf(&b, "\nThe address leads to another host: %s\nFetch that address if you want what is there.", visible(to.String()))
		return b.String()
	}
	text = visible(text)
	if in.MaxBytes > 0 && len(text) > in.MaxBytes {
		rest := len(text) - in.MaxBytes
		cut := in.MaxBytes
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + fmt.Sprintf("\n[%d more bytes are left out because of max_bytes]", rest)
	}
	b.WriteString("\n" + text)
	if !whole {
		fmt.Fprintf(&b, "\n[the page is larger than %d MiB; the rest was not read]", maxFetch>>20)
	}
	return b.String()
}

func read(resp *http.Response, data []byte, raw bool) (kind, text string) {
	declared := resp.Header.Get("Content-Type")
	kind, _, err := mime.ParseMediaType(declared)
	if err != nil || kind == "" || kind == "application/octet-stream" {
		declared = http.DetectContentType(data)
		kind, _, _ = mime.ParseMediaType(declared)
	}
	kind = shown(kind)
	if coding := resp.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return kind, fmt.Sprintf("This cannot be read: it is encoded as %s.", shown(coding))
	}
	switch {
	case len(data) == 0:
		return kind, "(empty)"
	case kind == "application/pdf":
		return kind, fmt.Sprintf("This is a PDF document of %d bytes; fetch_url reads text only.", len(data))
	case strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return kind, fmt.Sprintf("This is a picture of %d bytes; fetch_url reads text only.", len(data))
	case !textual(kind):
		return kind, fmt.Sprintf("This is a file of %d bytes that is not text; fetch_url reads text only.", len(data))
	}
	data = decoded(data, declared)
	if raw || kind != "text/html" && kind != "application/xhtml+xml" {
		return kind, string(data)
	}
	return kind, markdown(data, resp.Request.URL)
}

func shown(word string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, word[:min(len(word), 80)])
}

func textual(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml") {
		return true
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/ecmascript", "application/x-javascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonl", "application/sql",
		"application/x-sh", "application/x-www-form-urlencoded", "application/graphql", "application/rtf":
		return true
	}
	return false
}

// decoded is text as UTF-8: by its byte order mark, by what the host declares, by
// what the page declares, and else by what it looks like.
func decoded(data []byte, declared string) []byte {
	encoding, name, certain := charset.DetermineEncoding(data, declared)
	if name == "utf-8" || !certain && utf8.Valid(data) {
		return bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	text, err := encoding.NewDecoder().Bytes(data)
	if err != nil {
		return data
	}
	return text
}

// maxPaced is how many agents are remembered before those without recent calls
// are forgotten.
const maxPaced = 1024

// A pace holds each agent to a rate: at most N calls in any span of length Per.
type pace struct {
	rate tools.Rate
	mu   sync.Mutex
	last map[claybot.AgentID][]time.Time // of the calls within the span, oldest first
}

func newPace(r tools.Rate) *pace {
	return &pace{rate: r, last: make(map[claybot.AgentID][]time.Time)}
}

func (p *pace) take(agent claybot.AgentID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if len(p.last) >= maxPaced {
		for a, calls := range p.last {
			if now.Sub(calls[len(calls)-1]) >= p.rate.Per {
				delete(p.last, a)
			}
		}
	}
	calls := p.last[agent]
	for len(calls) > 0 && now.Sub(calls[0]) >= p.rate.Per {
		calls = calls[1:]
	}
	if len(calls) >= p.rate.N {
		after := p.rate.Per - now.Sub(calls[0])
		return &tools.Fault{
			Code: tools.FaultRate, Retriable: true, After: after,
			Text: fmt.Sprintf("more than %s fetches; wait %s and go on with what you have", p.rate, max(after.Round(time.Second), time.Second)),
		}
	}
	p.last[agent] = append(calls, now)
	return nil
}
