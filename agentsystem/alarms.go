package agentsystem

import (
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// alarmPrefix starts the keys of the marks of connectors of whose stop operators know.
const alarmPrefix = "notice/connector/"

// clearEvery is how often alarms look whether a connector works again.
const clearEvery = time.Second

// Alarms tell operators, over a connector that works, that another one has stopped for good,
// once for each cause, across restarts as well, and that it works again.
type alarms struct {
	people *people.Directory
	marks  storage.CheckpointSet // nil: a restart repeats a notice within the next hour
	log    *slog.Logger
}

// stopped tells operators that a connector has stopped.
func (a *alarms) stopped(ctx context.Context, name, cause string) {
	known, told := "", 0
	var err error
	if a.marks != nil {
		known, err = a.marks.Checkpoint(ctx, alarmPrefix+name)
	}
	if err == nil && known == cause {
		return
	}
	if err == nil {
		key := fmt.Sprintf("stopped/%s/%08x/%d", name, crc32.ChecksumIEEE([]byte(cause)), time.Now().Unix()/3600)
		told, err = a.people.TellOperators(ctx, key, func(v texts.Voice) string { return v.ConnectorStopped(name, cause) })
	}
	if err == nil && told > 0 && a.marks != nil {
		err = a.marks.SetCheckpoint(ctx, alarmPrefix+name, cause)
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("failed to tell operators of a stopped connector", "connector", name, "err", err)
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
	key := fmt.Sprintf("works/%s/%08x/%d", c.Name(), crc32.ChecksumIEEE([]byte(cause)), time.Now().Unix()/3600)
	_, err = a.people.TellOperators(ctx, key, func(v texts.Voice) string { return v.ConnectorWorks(c.Name()) })
	if err == nil {
		err = a.marks.SetCheckpoints(ctx, map[string]string{alarmPrefix + c.Name(): ""})
	}
	if err != nil && ctx.Err() == nil {
		a.log.Warn("failed to tell operators that a connector works again", "connector", c.Name(), "err", err)
	}
}
