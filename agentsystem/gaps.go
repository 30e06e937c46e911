package agentsystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

const (
	// gapPrefix starts the keys of the marks of gaps of which operators are still to be told. With
	// outagePrefix, the last gap of each connector is remembered.
	gapPrefix    = "notice/gap/"
	outagePrefix = "notice/outage/"
	// outageSlack is by how much the end of one gap may lie after the start of the next.
	outageSlack = time.Minute
)

// Gaps are times of which messages of all chats of a connector may be missing.
type gaps struct {
	people *people.Directory
	marks  storage.CheckpointSet // nil: no gap is remembered, and none is reported to operators
	due    atomic.Bool           // operators may have to be told
}

// outage returns m with the start under which the last gap of its connector is known, if m is
// about the same outage: each member knows another time at which the source delivered last. It
// returns once the gap is durable. The caller holds the claim of the gaps of the connector.
func (g *gaps) outage(ctx context.Context, m connectors.Missed) (connectors.Missed, error) {
	if g.marks == nil {
		return m, nil
	}
	var last connectors.Missed
	text, err := g.marks.Checkpoint(ctx, outagePrefix+m.Connector)
	if err == nil && json.Unmarshal([]byte(text), &last) == nil && last.From.Before(m.To) && m.From.Before(last.To.Add(-outageSlack)) {
		m.From, m.Assumed = last.From, last.Assumed
		return m, nil
	}
	if err == nil {
		b, _ := json.Marshal(m) // the times of this era always encode
		err = g.marks.SetCheckpoint(ctx, outagePrefix+m.Connector, string(b))
	}
	if err != nil {
		return m, fmt.Errorf("store a gap of %s: %w", m.Connector, err)
	}
	return m, nil
}

// missed makes operators be told that messages of all chats of a connector may be missing. It
// returns once that is durable.
func (g *gaps) missed(ctx context.Context, m connectors.Missed) error {
	if g.marks == nil {
		return nil
	}
	b, err := json.Marshal(m)
	g.due.Store(true)
	if err == nil {
		err = g.marks.SetCheckpoint(ctx, fmt.Sprintf("%s%s/%d", gapPrefix, m.Connector, m.From.Unix()), string(b))
	}
	if err != nil {
		return fmt.Errorf("store that messages of %s may be missing: %w", m.Connector, err)
	}
	return nil
}

// tell tells operators of gaps, each once. An operator who wrote lately on the connector
// has read of it there. A gap of which they cannot be told keeps back no other.
func (g *gaps) tell(ctx context.Context) error {
	g.due.Store(false)
	all, err := g.marks.ListCheckpoints(ctx, gapPrefix)
	if err != nil || len(all) > 0 {
		g.due.Store(true)
	}
	errs := []error{err}
	for _, mark := range all {
		told, err := g.tellOne(ctx, mark.Value)
		if err == nil && told > 0 { // the key names the gap: a newer one has another
			err = g.marks.SetCheckpoints(ctx, map[string]string{mark.Key: ""})
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// tellOne tells operators of one gap and returns how many it can tell.
func (g *gaps) tellOne(ctx context.Context, text string) (told int, err error) {
	var m connectors.Missed
	if json.Unmarshal([]byte(text), &m) != nil {
		return 1, nil // what is damaged is dropped
	}
	reads := func(e storage.IndexEntry, r claybot.Route) bool {
		return r.Connector == m.Connector && !e.LastUserAt.Time().Before(m.From.Add(-gapRecent))
	}
	key := fmt.Sprintf("gap/operators/%s/%d", m.Connector, m.From.Unix())
	return g.people.TellOperators(ctx, key, reads, func(v texts.Voice) string { return v.GapOperators(m) })
}
