package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/lazyregexp"
)

// The kinds of search engines.
const (
	Brave   = "brave"
	Tavily  = "tavily"
	SearXNG = "searxng"
)

// A Provider is a search engine as the configuration names it.
type Provider struct {
	Kind string // Brave, Tavily or SearXNG
	// Key is its secret. SearXNG needs none.
	Key string
	// BaseURL is where it is, without a path of the API; empty for that of Brave
	// and Tavily. One that is written out may be in a private network, as it is the
	// operator's own word.
	BaseURL string
}

// usual are the addresses of the engines that have one.
var usual = map[string]string{Brave: "https://api.search.brave.com", Tavily: "https://api.tavily.com"}

type engine struct {
	rest
	name   string
	key    string
	base   string
	client *http.Client
	make   func(e *engine, ctx context.Context, query string, count int) (*http.Request, error)
	read   func(data []byte) ([]hit, error)
}

func (c Config) engine(p Provider) (*engine, error) {
	e := &engine{name: p.Kind, key: p.Key, base: strings.TrimRight(p.BaseURL, "/")}
	switch p.Kind {
	case Brave:
		e.make, e.read = (*engine).brave, readBrave
	case Tavily:
		e.make, e.read = (*engine).tavily, readTavily
	case SearXNG:
		e.make, e.read = (*engine).searxng, readSearXNG
	default:
		return nil, fmt.Errorf("unknown search engine %.40q; want %s, %s or %s", p.Kind, Brave, Tavily, SearXNG)
	}
	var policy egress.Policy
	if e.base == "" {
		if e.base = usual[p.Kind]; e.base == "" {
			return nil, fmt.Errorf("%s: it has no base_url", p.Kind)
		}
		host, err := egress.HostOf(e.base)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Kind, err)
		}
		policy.Allow = []string{host}
	} else {
		pair, err := egress.PairOf(e.base)
		if err != nil {
			return nil, fmt.Errorf("%s: base_url: %w", p.Kind, err)
		}
		policy.Private = []string{pair}
	}
	if p.Kind != SearXNG && p.Key == "" {
		return nil, fmt.Errorf("%s: it has no key", p.Kind)
	}
	if strings.ContainsAny(p.Key, "\r\n\x00") {
		return nil, fmt.Errorf("%s: the key is not one line", p.Kind)
	}
	var err error
	// A redirect would take the key elsewhere.
	e.client, err = c.client(policy, egress.Limits{Timeout: engineLimit, MaxBytes: maxAnswer, NoRedirects: true})
	return e, err
}

// ask is one search. Its errors are *engineError, or those of the client.
func (e *engine) ask(ctx context.Context, query string, count int) ([]hit, error) {
	req, err := e.make(e, ctx, query, count)
	if err != nil {
		return nil, &engineError{why: "cannot be asked", lasting: true}
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "claybot")
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := statusError(resp); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	hits, err := e.read(data)
	if err != nil {
		return nil, &engineError{why: "answers with something else than results"}
	}
	return clean(hits), nil
}

// statusError classifies an answer without results. Its text is not repeated: it
// may hold the key.
func statusError(resp *http.Response) error {
	switch code := resp.StatusCode; {
	case code == http.StatusOK:
		return nil
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusUnprocessableEntity && badToken(resp.Body):
		return &engineError{why: fmt.Sprintf("does not let claybot in (status %d); its key may be wrong, or answers in JSON switched off", code), lasting: true}
	case code == http.StatusPaymentRequired, code == 432, code == 433: // the last two are Tavily's
		return &engineError{why: fmt.Sprintf("says that its plan is used up (status %d)", code), lasting: true}
	case code == http.StatusTooManyRequests:
		return &engineError{why: "is asked too often", rest: max(retryAfter(resp.Header.Get("Retry-After")), restLimit)}
	case code >= 500:
		return &engineError{why: fmt.Sprintf("fails inside (status %d)", code), rest: retryAfter(resp.Header.Get("Retry-After"))}
	case code/100 == 3:
		return &engineError{why: "is elsewhere; its base_url leads to a redirect", lasting: true}
	default:
		return &engineError{why: fmt.Sprintf("does not take the search (status %d)", code)}
	}
}

func badToken(body io.Reader) bool {
	text, err := io.ReadAll(io.LimitReader(body, 8<<10))
	return err == nil && bytes.Contains(text, []byte("SUBSCRIPTION_TOKEN_INVALID"))
}

// retryAfter is a number of seconds or a date; 0 for anything else.
func retryAfter(v string) time.Duration {
	if n, err := strconv.Atoi(v); err == nil && n > 0 {
		return time.Duration(min(n, 86400)) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

func (e *engine) brave(ctx context.Context, query string, count int) (*http.Request, error) {
	q := url.Values{"q": {query}, "count": {strconv.Itoa(count)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+"/res/v1/web/search?"+q.Encode(), nil)
	if err == nil {
		req.Header.Set("X-Subscription-Token", e.key)
	}
	return req, err
}

func readBrave(data []byte) ([]hit, error) {
	var answer struct {
		Type string `json:"type"`
		Web  struct {
			Results []struct{ Title, URL, Description string } `json:"results"`
		} `json:"web"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	if answer.Type != "search" {
		return nil, errors.New("no answer to a search")
	}
	var hits []hit
	for _, r := range answer.Web.Results {
		hits = append(hits, hit{r.Title, r.URL, r.Description})
	}
	return hits, nil
}

func (e *engine) tavily(ctx context.Context, query string, count int) (*http.Request, error) {
	body, err := json.Marshal(map[string]any{"query": query, "max_results": count, "search_depth": "basic"})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.base+"/search", bytes.NewReader(body))
	if err == nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	return req, err
}

func (e *engine) searxng(ctx context.Context, query string, _ int) (*http.Request, error) {
	q := url.Values{"q": {query}, "format": {"json"}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.base+"/search?"+q.Encode(), nil)
	if err == nil && e.key != "" {
		req.Header.Set("Authorization", "Bearer "+e.key)
	}
	return req, err
}

type plainResults struct {
	Results *[]struct{ Title, URL, Content string } `json:"results"`
	// Unresponsive are the engines that SearXNG got nothing from.
	Unresponsive []json.RawMessage `json:"unresponsive_engines"`
}

func (p plainResults) hits() ([]hit, error) {
	if p.Results == nil {
		return nil, errors.New("no results")
	}
	var hits []hit
	for _, r := range *p.Results {
		hits = append(hits, hit{r.Title, r.URL, r.Content})
	}
	return hits, nil
}

func readTavily(data []byte) ([]hit, error) {
	var answer plainResults
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	return answer.hits()
}

func readSearXNG(data []byte) ([]hit, error) {
	var answer plainResults
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, err
	}
	hits, err := answer.hits()
	if err == nil && len(hits) == 0 && len(answer.Unresponsive) > 0 {
		return nil, errors.New("none of its engines answered") // that is not the same as nothing found
	}
	return hits, err
}

var tag = lazyregexp.New(`</?[a-zA-Z][^<>]*>`)

// clean makes the results fit for a list: one line each, without tags, and only
// with addresses of the web.
func clean(hits []hit) []hit {
	var out []hit
	line := func(s string) string {
		s = html.UnescapeString(tag.ReplaceAllString(s, ""))
		s = strings.Join(strings.Fields(visible(s)), " ")
		if r := []rune(s); len(r) > maxSnippet {
			s = string(r[:maxSnippet]) + "…"
		}
		return s
	}
	for _, h := range hits {
		u, err := url.Parse(strings.TrimSpace(h.address))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || len(h.address) > maxAddress {
			continue
		}
		h = hit{line(h.title), u.String(), line(h.snippet)}
		if h.title == "" {
			h.title = u.Host
		}
		out = append(out, h)
	}
	return out
}
