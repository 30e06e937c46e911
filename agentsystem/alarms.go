package agentsystem

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
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
	alarmEvery = 30 * time.Second
)

// Alarms tell operators, over a connector that works, that another one has stopped for good,
// once for each cause, across restarts as well, and that it works again. While no operator can
// be reached, they try again.
type alarms struct {
	people *people.Directory
	marks  storage.CheckpointSet // nil: a restart repeats a notice within the next hour
	log    *slog.Logger

	mu   sync.Mutex
	open map[string]stop // connectors of whose stop no operator knows yet
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
		told, err = a.people.TellOperators(ctx, hourly("stopped/"+name, s.cause), func(v texts.Voice) string { return v.ConnectorStopped(name, s.says) })
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
	for {
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
	_, err = a.people.TellOperators(ctx, hourly("works/"+c.Name(), cause), func(v texts.Voice) string { return v.ConnectorWorks(c.Name()) })
	if err == nil {
		err = a.marks.SetCheckpoints(ctx, map[string]string{alarmPrefix + c.Name(): ""})
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("failed to tell operators that a connector works again", "connector", c.Name(), "err", err)
	}
}
