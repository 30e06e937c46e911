package agentsystem

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// alarmPrefix starts the keys of the marks of connectors of whose stop operators know: the cause.
// With noticesSuffix they count the notices about one connector, with worksSuffix it is still to
// be told that it works again.
const (
	alarmPrefix   = "notice/connector/"
	noticesSuffix = "/notices"
	worksSuffix   = "/works"
)

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
	people   *people.Directory
	marks    storage.CheckpointSet // nil: only the first stop for each cause is told, and no trouble
	troubles *troubles
	findings *findings
	gaps     *gaps
	log      *slog.Logger

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

// drop forgets the notices that are still to be sent about a connector that is replaced or gone.
func (a *alarms) drop(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, name)
}

// tellStop tells operators that a connector has stopped, unless they know.
func (a *alarms) tellStop(ctx context.Context, name string, s stop) {
	told := 0
	known, err := a.known(ctx, name)
	if err == nil && known.cause != s.cause {
		key := fmt.Sprintf("stopped/%s/%08x/%d", name, crc32.ChecksumIEEE([]byte(s.cause)), known.notices)
		told, err = a.people.TellOperators(ctx, key, nil, func(v texts.Voice) string { return v.ConnectorStopped(name, s.says) })
	}
	if err == nil && told > 0 && a.marks != nil {
		err = a.marks.SetCheckpoints(ctx, known.next(name, s.cause, ""))
	}
	if err != nil {
		if ctx.Err() == nil {
			a.log.Warn("failed to tell operators of a stopped connector, retrying", "connector", name, "err", err)
		}
		return
	}
	if told == 0 && known.cause != s.cause {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[name] == s {
		delete(a.open, name)
	}
}

// A knownStop is what operators know of the stops of a connector.
type knownStop struct {
	cause   string // of the stop; empty: that it works
	notices int    // about its stops and returns: makes the key of the next notice new
	works   bool   // it is still to be told that it works again
}

// known returns what operators know of the stops of a connector.
func (a *alarms) known(ctx context.Context, name string) (k knownStop, err error) {
	if a.marks == nil {
		return k, nil
	}
	all, err := a.marks.ListCheckpoints(ctx, alarmPrefix+name)
	for _, m := range all {
		switch m.Key {
		case alarmPrefix + name:
			k.cause = m.Value
		case alarmPrefix + name + noticesSuffix:
			k.notices, _ = strconv.Atoi(m.Value) // 0 where it is damaged
		case alarmPrefix + name + worksSuffix:
			k.works = true
		}
	}
	return k, err
}

// next returns the marks after one more notice.
func (k knownStop) next(name, cause, works string) map[string]string {
	return map[string]string{
		alarmPrefix + name:                 cause,
		alarmPrefix + name + noticesSuffix: strconv.Itoa(k.notices + 1),
		alarmPrefix + name + worksSuffix:   works,
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
		for _, t := range a.troubles.all() {
			if err := a.troubles.report(ctx, t); err != nil && ctx.Err() == nil {
				a.log.Warn("failed to tell operators of a trouble, retrying", "trouble", t.name, "err", err)
			}
		}
		a.findings.look(ctx)
		if n%60 != 0 && !a.gaps.due.Load() { // at times those that another member has stored
			continue
		}
		if err := a.gaps.tell(ctx); err != nil && ctx.Err() == nil {
			a.log.Warn("failed to tell operators that messages may be missing, retrying", "err", err)
		}
	}
}

// cleared tells operators that a connector of whose stop they know works again, once it
// does. It returns then, or when ctx is done.
func (a *alarms) cleared(ctx context.Context, c connectors.Connector) {
	known, err := a.known(ctx, c.Name())
	if err != nil || known.cause == "" && !known.works {
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
	if err := a.tellWorks(ctx, c.Name()); err != nil && ctx.Err() == nil {
		a.log.Warn("failed to tell operators that a connector works again", "connector", c.Name(), "err", err)
	}
}

// tellWorks tells operators that a connector works again, unless another member has. It forgets
// the stop first: after a crash in between, operators may read of the next stop without having
// read that the connector worked, but they read of each stop.
func (a *alarms) tellWorks(ctx context.Context, name string) error {
	known, err := a.known(ctx, name)
	if err == nil && known.cause != "" {
		err = a.marks.SetCheckpoints(ctx, known.next(name, "", "untold"))
		known.notices, known.works = known.notices+1, true
	}
	if err != nil || !known.works {
		return err
	}
	_, err = a.people.TellOperators(ctx, fmt.Sprintf("works/%s/%d", name, known.notices), nil, func(v texts.Voice) string { return v.ConnectorWorks(name) })
	if err != nil {
		return err
	}
	return a.marks.SetCheckpoints(ctx, map[string]string{alarmPrefix + name + worksSuffix: ""})
}
