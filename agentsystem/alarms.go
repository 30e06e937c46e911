package agentsystem

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// alarmPrefix starts the keys of the marks of connectors of whose stop operators know.
const alarmPrefix = "notice/connector/"

const (
	// clearEvery is how often alarms look whether a connector works again.
	clearEvery = time.Second
	// alarmEvery is how often alarms look whether there is something to tell that operators do
	// not know, and whether an operator can be reached now.
	alarmEvery = time.Minute
)

// Alarms tell operators, over a connector that works, that another one has stopped for good,
// once for each cause, across restarts as well, and that it works again; and of troubles, grouped
// and at most once an hour each. While no operator can be reached, they try again.
type alarms struct {
	people    *people.Directory
	marks     storage.CheckpointSet // nil: a restart repeats a notice within the next hour, and no trouble is told
	outbox    storage.OutboxReader
	index     storage.Index
	sender    *delivery.Deliverer
	instances platforms.Instances
	disk      func() (overview.DiskStatus, error) // nil: unknown
	member    func() string                       // the name of this one
	log       *slog.Logger

	gaps atomic.Bool // operators may have to be told of gaps

	mu      sync.Mutex
	open    map[string]stop   // connectors of whose stop no operator knows yet
	budgets map[string]string // budgets that stopped a run since the start, with their limits
}

// A stop is why a connector has stopped.
type stop struct {
	cause string // the error
	says  string // in words for people; may be empty
}

// stopped tells operators that a connector has stopped.
func (a *alarms) stopped(ctx context.Context, name, cause, says string) {
	a.mu.Lock()
	if a.open == nil {
		a.open = make(map[string]stop)
	}
	a.open[name] = stop{cause, says}
	a.mu.Unlock()
	a.tellStop(ctx, name, stop{cause, says})
}

// tellStop tells operators that a connector has stopped, unless they know.
func (a *alarms) tellStop(ctx context.Context, name string, s stop) {
	known, told := "", 0
	var err error
	if a.marks != nil {
		known, err = a.marks.Checkpoint(ctx, alarmPrefix+name)
	}
	if err == nil && known != s.cause {
		told, err = a.people.TellOperators(ctx, hourly("stopped/"+name, s.cause), nil, func(v texts.Voice) string { return v.ConnectorStopped(name, s.says) })
	}
	if err == nil && told > 0 && a.marks != nil {
		err = a.marks.SetCheckpoint(ctx, alarmPrefix+name, s.cause)
	}
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("failed to tell operators of a stopped connector, retrying", "connector", name, "err", err)
		}
		return
	}
	if told == 0 && known != s.cause {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[name] == s {
		delete(a.open, name)
	}
}

// hourly is the key of a notice that is sent once an hour with the same content.
func hourly(cause, content string) string {
	return fmt.Sprintf("%s/%08x/%d", cause, crc32.ChecksumIEEE([]byte(content)), time.Now().Unix()/3600)
}

// watch tells operators what they do not know yet, until ctx is done.
func (a *alarms) watch(ctx context.Context) {
	tick := time.NewTicker(alarmEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.mu.Lock()
		open := maps.Clone(a.open)
		a.mu.Unlock()
		for name, s := range open {
			a.tellStop(ctx, name, s)
		}
		if a.marks == nil {
			continue
		}
		for _, t := range a.troubles() {
			if err := a.report(ctx, t); err != nil && ctx.Err() == nil {
				a.log.Warn("failed to tell operators of a trouble, retrying", "trouble", t.name, "err", err)
			}
		}
		if n%60 != 0 && !a.gaps.Load() { // at times those that another member has stored
			continue
		}
		if err := a.tellGaps(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("failed to tell operators that messages may be missing, retrying", "err", err)
		}
	}
}

// cleared tells operators that a connector of whose stop they know works again, once it
// does. It returns then, or when ctx is done.
func (a *alarms) cleared(ctx context.Context, c connectors.Connector) {
	if a.marks == nil {
		return
	}
	cause, err := a.marks.Checkpoint(ctx, alarmPrefix+c.Name())
	if err != nil || cause == "" {
		return
	}
	tick := time.NewTicker(clearEvery)
	defer tick.Stop()
	for c.Health().State != connectors.StateLive {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	_, err = a.people.TellOperators(ctx, hourly("works/"+c.Name(), cause), nil, func(v texts.Voice) string { return v.ConnectorWorks(c.Name()) })
	if err == nil {
		err = a.marks.SetCheckpoints(ctx, map[string]string{alarmPrefix + c.Name(): ""})
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("failed to tell operators that a connector works again", "connector", c.Name(), "err", err)
	}
}
