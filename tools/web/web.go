// Package web lets agents read the web: fetch_url gets one page as text, and
// web_search asks search engines. Both go out through package egress, so that no
// address, redirect or name leads into the operator's own network.
//
// What they bring in is untrusted: results are marked so, and texts
// that people would not see on a page are left out.
//
// Only cmd imports it.
package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/tools"
)

// Limits of fetch_url.
const (
	fetchLimit = 20 * time.Second
	maxFetch   = 5 << 20 // bytes of a page, decompressed
)

// Config says which tools there are, and what they may reach.
type Config struct {
	// Fetch is what fetch_url may reach; nil: there is no fetch_url. Its Own,
	// Resolver and Log are those below, whatever it says.
	Fetch *egress.Policy
	// Search are asked in their order, until one answers; none: there is no
	// web_search.
	Search []Provider
	// Listed reports whether an agent may fetch an address without asking. With Listed
	// set, fetch_url follows a redirect to another host only when that address is listed;
	// else it tells where it leads, so that the rules are asked about it too. Within a
	// host, redirects are followed: they tell it nothing that it does not know. Nil: no
	// address is listed, and redirects are followed.
	Listed func(env tools.Env, address string) bool
	// FetchRate is for each agent; zero is 20 a minute.
	FetchRate tools.Rate
	// Own, Resolver and Requests are those of egress.Policy, the last one under
	// the name Log.
	Own      func(netip.AddrPort) bool
	Resolver *net.Resolver
	Requests func(egress.Request)
	// Log is told about search engines that fail; nil discards.
	Log *slog.Logger
}

// Tools are the tools that the configuration asks for. The error names what is
// wrong in it; there are no tools then.
func Tools(c Config) ([]tools.Tool, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.FetchRate == (tools.Rate{}) {
		c.FetchRate = tools.Rate{N: 20, Per: time.Minute}
	}
	var all []tools.Tool
	if c.Fetch != nil {
		client, err := c.client(*c.Fetch, egress.Limits{Timeout: fetchLimit, HeaderTimeout: fetchLimit})
		if err != nil {
			return nil, fmt.Errorf("fetch_url: %w", err)
		}
		f := &fetcher{client: client, listed: c.Listed, pace: newPace(c.FetchRate)}
		all = append(all, f.tool())
	}
	if len(c.Search) == 0 {
		return all, nil
	}
	s := &searcher{log: c.Log}
	for _, p := range c.Search {
		e, err := c.engine(p)
		if err != nil {
			return nil, fmt.Errorf("web_search: %w", err)
		}
		s.engines = append(s.engines, e)
	}
	return append(all, s.tool()), nil
}

func (c Config) client(p egress.Policy, l egress.Limits) (*http.Client, error) {
	p.Own, p.Resolver, p.Log = c.Own, c.Resolver, c.Requests
	door, err := egress.New(p)
	if err != nil {
		return nil, err
	}
	return door.Client(l), nil
}

// Codes of the faults of these tools.
const (
	faultRefused = "refused"     // by the policy
	faultNetwork = "network"     // the host does not answer as it should
	faultSize    = "too_large"   // or compressed too well
	faultAddress = "bad_address" // it is not a web address
	faultSearch  = "unavailable" // no search engine answers
)

// faultOf is fault for a request of an address. A host that the answer led to is
// named in words of the server that answered, and stays out.
func faultOf(err error, address string) *tools.Fault {
	f := fault(err)
	e, ok := errors.AsType[*url.Error](err)
	if f.Code != faultRefused || !ok {
		return f
	}
	asked, err := egress.HostOf(address)
	if last, lastErr := egress.HostOf(e.URL); err == nil && (lastErr != nil || last != asked) {
		f.Text = "refused: the address leads to another one that is not allowed"
	}
	return f
}

func fault(err error) *tools.Fault {
	f := &tools.Fault{Code: faultNetwork, Text: egress.Words(err), Retriable: true}
	if _, ok := errors.AsType[*egress.RefusedError](err); ok {
		f.Code, f.Retriable = faultRefused, false
		f.Text += "; an operator can allow a host in the configuration, under web"
	} else if _, ok := errors.AsType[*egress.SizeError](err); ok {
		f.Code, f.Retriable = faultSize, false
	} else if errors.Is(err, egress.ErrRedirect) {
		f.Retriable = false
	}
	return f
}
