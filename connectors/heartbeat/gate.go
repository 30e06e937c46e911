package heartbeat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors/schedule"
)

const gateTime = time.Minute

// askGates asks the gates of tasks, several at once, and returns one verdict for
// each task. The error is that of ctx.
func (h *Heartbeat) askGates(ctx context.Context, tasks []*task, s Settings) ([]schedule.Verdict, error) {
	verdicts := make([]schedule.Verdict, len(tasks))
	dir, err := filepath.Abs(h.cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of the heartbeat: %w", err)
	}
	var work sync.WaitGroup
	defer work.Wait()
	for i, t := range tasks {
		if t.gate == "" {
			continue
		}
		if !s.Gates {
			verdicts[i].Note = schedule.NoteForbidden
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		work.Go(func() {
			g := schedule.Gate{Command: t.gate, Timeout: gateTime, Dir: dir, Task: t.id, Zone: s.Zone}
			verdicts[i], _ = h.base.Ask(ctx, g) // its error is that of ctx, which is asked below
		})
	}
	work.Wait()
	return verdicts, context.Cause(ctx)
}
