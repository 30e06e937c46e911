package webchat

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

const (
	// Limits of a transcript, in entries.
	transcriptDefault = 100
	transcriptLimit   = 500
	// readLimit is the maximum number of entries to read for one transcript,
	// including those of other users' conversations with the same name.
	readLimit = 8 * transcriptLimit
)

// An askedEntry is a user's message of a transcript, and why no run takes it.
type askedEntry struct {
	view    *asked
	skipped string
}

// transcript answers with the newest lines of a conversation, and with the
// position after which a stream goes on.
func (c *Chat) transcript(w http.ResponseWriter, r *http.Request, d claybot.Descriptor, t Transcripts) error {
	limit := transcriptDefault
	if s := r.URL.Query().Get("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return bad("limit must be a number from 1.")
		}
		limit = min(n, transcriptLimit)
	}
	if !c.intake.Begun() {
		return errStopped
	}
	// The position is read first, so that the stream delivers later messages.
	after, err := t.LastN(r.Context(), d)
	if err != nil {
		c.log.Warn("failed to read the position", "conversation", d.ChannelID, "err", err)
		return errRead
	}
	entries, err := own(r.Context(), d, t, limit)
	if err != nil {
		c.log.Warn("failed to read the transcript", "conversation", d.ChannelID, "err", err)
		return errRead
	}
	out := album{lines: make([]line, 0, len(entries))}
	asks := make(map[claybot.MessageID]askedEntry)
	shown := make(map[claybot.MessageID]bool) // by the command that they answered
	for _, e := range entries {
		switch {
		case e.Message != nil && shown[e.Message.ID]:
		case e.Message != nil && e.Message.Amends != "": // that of a message before this transcript is left out
			if was, here := asks[e.Message.Amends]; here {
				was.view.amend(*e.Message, e.Skipped, was.skipped)
			}
		case e.Message != nil:
			shown[e.Message.FollowUp().ID] = e.Message.Type == claybot.MessageReset
			u := userView(*e.Message)
			out.lines = append(out.lines, line{User: &u})
			asks[e.Message.ID] = askedEntry{&u, e.Skipped}
		case e.Outgoing != nil && e.Outgoing.N <= after:
			out.add(c.saidView(*e.Outgoing))
		}
	}
	if err := withTools(r.Context(), t, out.lines); err != nil { // the transcript is complete without them
		c.log.Warn("failed to read the tool calls of runs", "conversation", d.ChannelID, "err", err)
	}
	writeJSON(w, http.StatusOK, map[string]any{"entries": out.lines, "after": after, "more": len(entries) >= limit})
	return nil
}

// toolRuns is the number of newest runs whose tool calls a transcript contains.
const toolRuns = 50

// withTools adds the tool calls of each run to the first part of its answer.
func withTools(ctx context.Context, t Transcripts, lines []line) error {
	log, ok := t.(ToolLog)
	if !ok {
		return nil
	}
	first := make(map[claybot.RunID]*said)
	var runs []claybot.RunID
	for _, l := range slices.Backward(lines) {
		m := l.Message
		if m == nil || m.Run == "" || m.Shown != "" || m.Kind != claybot.OutgoingAnswer && m.Kind != claybot.OutgoingNotice {
			continue
		}
		if first[m.Run] == nil {
			if len(runs) == toolRuns {
				break
			}
			runs = append(runs, m.Run)
		}
		if first[m.Run] == nil || m.Kind == claybot.OutgoingAnswer || first[m.Run].Kind != claybot.OutgoingAnswer {
			first[m.Run] = m
		}
	}
	for _, run := range runs {
		tools, err := log.ToolsOf(ctx, run)
		if err != nil {
			return err
		}
		first[run].Tools = tools
	}
	return nil
}

// own reads the newest limit entries of d's conversation, oldest first. It
// skips entries of other users' conversations with the same name, and reads up
// to readLimit entries.
func own(ctx context.Context, d claybot.Descriptor, t Transcripts, limit int) ([]storage.Entry, error) {
	for n := limit; ; n = min(4*n, readLimit) {
		all, err := t.Transcript(ctx, d, n)
		if err != nil && !errors.Is(err, storage.ErrNotFound) { // no messages yet
			return nil, err
		}
		mine := make([]storage.Entry, 0, min(limit, len(all)))
		for _, e := range all {
			if e.Message != nil || e.Outgoing != nil && ours(d, *e.Outgoing) {
				mine = append(mine, e)
			}
		}
		if len(mine) >= limit || len(all) < n || n >= readLimit {
			return mine[max(0, len(mine)-limit):], nil
		}
	}
}

// ours reports whether o is for the user of d. The outbox is ordered by
// channel, and two users may have conversations with the same name.
func ours(d claybot.Descriptor, o claybot.Outgoing) bool {
	return o.Route.UserID == "" || o.Route.UserID == d.UserID
}
