package heartbeat

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors"
)

const (
	gateTime = time.Minute
	maxGates = 4 // that run at once
)

const noteForbidden = "Gate commands may not run on this machine, so nobody checked whether there is anything to do."

// askGates asks the gates of tasks, several at once, and returns one verdict for
// each task. The error is that of ctx.
func askGates(ctx context.Context, dir string, tasks []*task, s Settings) ([]connectors.Verdict, error) {
	verdicts := make([]connectors.Verdict, len(tasks))
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder of the heartbeat: %w", err)
	}
	var work sync.WaitGroup
	defer work.Wait()
	room := make(chan struct{}, maxGates)
	for i, t := range tasks {
		if t.gate == "" {
			continue
		}
		if !s.Gates {
			verdicts[i].Note = noteForbidden
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		work.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			g := connectors.Gate{Command: t.gate, Timeout: gateTime, Dir: dir, Task: t.id, Zone: s.Zone}
			verdicts[i], _ = g.Ask(ctx) // its error is that of ctx, which is asked below
		})
	}
	work.Wait()
	return verdicts, context.Cause(ctx)
}
