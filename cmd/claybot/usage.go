package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

type usageCmd struct {
	By   []string `default:"day" enum:"day,agent,owner,channel,connector,model,type" help:"Columns to group by: day, agent, owner, channel, connector, model, type; separate several with commas."`
	Days int      `default:"30" help:"Number of days, including today."`
	CSV  bool     `name:"csv" help:"Print comma-separated values."`
	JSON bool     `name:"json" help:"Print JSON."`
}

// Run prints what models took.
func (c usageCmd) Run(e *env) error {
	if c.Days < 1 || c.Days > 400 {
		return usageError{errors.New("--days must be within 1 and 400")}
	}
	q := url.Values{
		"by":   {strings.Join(c.By, ",")},
		"from": {time.Now().UTC().AddDate(0, 0, 1-c.Days).Format(time.DateOnly)},
	}
	if c.CSV {
		return e.copyText("/usage?format=csv&" + q.Encode())
	}
	return show(e, c.JSON, to("/usage?"+q.Encode()), func(out web.UsageReport) error {
		if len(out.Usage) == 0 {
			return e.text("No usage in that period.\n")
		}
		head := make([]string, len(c.By))
		for i, by := range c.By {
			head[i] = strings.ToUpper(by)
		}
		rows := [][]string{append(head, "RUNS", "CALLS", "INPUT", "CACHED", "WRITTEN", "OUTPUT", "REASONING", "COST")}
		for _, s := range out.Usage {
			rows = append(rows, append(keysOf(s, c.By),
				strconv.FormatInt(s.Runs, 10), strconv.FormatInt(s.Usage.LLMCalls, 10),
				strconv.FormatInt(s.Usage.Input, 10), strconv.FormatInt(s.Usage.CachedInput, 10),
				strconv.FormatInt(s.Usage.CacheWrite, 10), strconv.FormatInt(s.Usage.Output, 10),
				strconv.FormatInt(s.Usage.Reasoning, 10), spentText(s)))
		}
		return e.table(rows)
	})
}

// spentText formats the cost of a row. Calls without a known price never count as free.
func spentText(s storage.Spent) string {
	u := s.Usage
	switch {
	case u.Unpriced == 0:
		return dollars(u.CostMicroUSD)
	case u.CostMicroUSD == 0:
		return fmt.Sprintf("unknown, %s unpriced", calls(u.Unpriced))
	}
	return fmt.Sprintf("≥ %s, %s unpriced", dollars(u.CostMicroUSD), calls(u.Unpriced))
}

func calls(n int64) string {
	if n == 1 {
		return "1 call"
	}
	return strconv.FormatInt(n, 10) + " calls"
}

// keysOf are what a row is summed up by.
func keysOf(s storage.Spent, by []string) []string {
	all := map[string]string{"day": s.Day, "agent": string(s.Agent), "owner": s.Owner, "model": s.Model, "type": string(s.Type), "channel": s.Channel, "connector": s.Connector}
	keys := make([]string, len(by))
	for i, name := range by {
		if keys[i] = all[name]; keys[i] == "" {
			keys[i] = "-"
		}
	}
	return keys
}

// copyText prints an answer that is no JSON.
func (e *env) copyText(path string) error {
	c, err := e.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("call the daemon: %w", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return fmt.Errorf("read the daemon's response: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return errors.New(words(resp.StatusCode, b))
	}
	return e.text(string(b))
}
