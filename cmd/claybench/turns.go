package main

import (
	"context"
	"fmt"
	"time"
)

// The turns of one conversation whose processor time is compared: so many around an
// early and around a late one.
const (
	earlyTurn = 100
	lateTurn  = 1600
	aroundIt  = 100
	turnLimit = 2 * time.Minute // for all of them
)

// turns measures what a turn costs in a short and in a long conversation with the same
// person, who always writes as much.
func (b *bencher) turns(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, turnLimit)
	defer cancel()
	return b.each(ctx, 0, nil, func(c *contestant, t *town) error {
		t.speak(1, 1, true)
		var cost [2]time.Duration
		for i, turn := range []int{earlyTurn, lateTurn} {
			from, err := usedBy(ctx, c, t, turn-aroundIt/2)
			if err != nil {
				return err
			}
			to, err := usedBy(ctx, c, t, turn+aroundIt/2)
			if err != nil {
				return err
			}
			cost[i] = (to - from) / aroundIt
		}
		if err := t.silence(ctx); err != nil {
			return err
		}
		fmt.Printf("turn %d: %.2f ms of processor time, turn %d: %.2f ms\n", earlyTurn, ms(cost[0]), lateTurn, ms(cost[1]))
		b.table.add(fmt.Sprintf("processor time of turn %d", earlyTurn), ms(cost[0]), "ms", 0, "")
		b.table.add(fmt.Sprintf("processor time of turn %d, ratio to turn %d", lateTurn, earlyTurn), ms(cost[1]), "ms", ratio(cost[1], cost[0]), "<= 1.3 times")
		return nil
	})
}

// usedBy is the processor time that was used when a person had so many answers.
func usedBy(ctx context.Context, c *contestant, t *town, answers int) (time.Duration, error) {
	for t.count(1) < answers {
		if err := rest(ctx, time.Millisecond); err != nil {
			return 0, fmt.Errorf("%d of %d turns: %w", t.count(1), answers, err)
		}
	}
	return usedCPU(c)
}
