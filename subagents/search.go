package subagents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/tools"
)

const (
	searchTime = 15 * time.Second
	// mostFound is how many of the newest records of each conversation one search finds.
	mostFound = 1001
)

// SearchHistory implements tools.Directory. It reads the conversations one after another, and
// holds no more of them than it finds.
func (d *Directory) SearchHistory(ctx context.Context, env tools.Env, words []string, skip, limit int) (tools.Findings, error) {
	var out tools.Findings
	entries, err := d.within(ctx, env.Agent)
	if err != nil {
		return out, fmt.Errorf("search histories: %w", err)
	}
	mine := d.Readers(ctx, env)
	most := min(skip+limit+1, mostFound)
	timed, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var all []tools.Finding
	for _, e := range entries {
		self := e.ID == env.Agent.ID
		if !self && d.audiences.Discloses(d.source(ctx, e), mine) {
			continue
		}
		var found []claybot.Record
		err := d.agents.Past(timed, e.ID, func(r claybot.Record) bool {
			if (!self || r.Run != env.Run) && fits(r, words) {
				found = append(found, r)
			}
			return len(found) < most
		})
		switch {
		case ctx.Err() != nil:
			return out, context.Cause(ctx)
		case errors.Is(err, storage.ErrNotFound): // deleted meanwhile
		case err != nil:
			out.Partly = true
		}
		if len(found) == 0 {
			continue
		}
		info, err := d.Info(ctx, e)
		if err != nil {
			return out, err
		}
		info.Self = self
		for _, r := range found {
			all = append(all, tools.Finding{Agent: info, Record: r})
		}
		slices.SortStableFunc(all, func(a, b tools.Finding) int { return cmp.Compare(b.Record.At, a.Record.At) })
		all = all[:min(len(all), most)]
	}
	out.More = len(all) > skip+limit
	out.Found = all[min(skip, len(all)):min(skip+limit, len(all))]
	return out, nil
}

// fits reports whether a record of what was said or done has all words.
func fits(r claybot.Record, words []string) bool {
	switch r.Type {
	case claybot.RecordUser, claybot.RecordAssistant, claybot.RecordSystem, claybot.RecordSummary:
	case claybot.RecordTool:
		if slices.Contains([]string{"search_history", "read_agent_history"}, r.Name) {
			return false // it has what it was searched for
		}
	default:
		return false
	}
	text := strings.ToLower(r.Text)
	return text != "" && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}
