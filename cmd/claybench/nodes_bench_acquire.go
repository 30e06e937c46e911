package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// acquireTries is how often the cost of Acquire is measured with each size.
const acquireTries = 300

// A shelf is a database with so many agents, and a node that uses it.
type shelf struct {
	agents int
	store  *shared
	node   string
	took   []time.Duration
}

// acquire measures what it costs to get an agent to work on, with few and with many
// agents in the store, in turn.
func (b *nodesBencher) acquire(ctx context.Context) (err error) {
	db, err := openDatabase(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var shelves []*shelf
	for _, n := range []int{b.agents / 10, 10 * b.agents} {
		s, err := fillShelf(ctx, db, n)
		if s != nil {
			defer func() { err = errors.Join(err, s.store.Close()) }()
		}
		if err != nil {
			return err
		}
		shelves = append(shelves, s)
	}
	if _, err := db.query(ctx, "CHECKPOINT"); err != nil {
		return err
	}
	for i := range acquireTries {
		for _, s := range shelves {
			if err := s.try(ctx, i); err != nil {
				return fmt.Errorf("acquire with %d agents: %w", s.agents, err)
			}
		}
	}
	few, many := shelves[0], shelves[1]
	for _, s := range shelves {
		slices.Sort(s.took)
	}
	base, mine := percentile(few.took, 0.5), percentile(many.took, 0.5)
	what := "Acquire of one agent of %d, %s"
	b.table.add(fmt.Sprintf(what, few.agents, "p50"), ms(base), "ms", 0, "")
	b.bar(fmt.Sprintf(what, many.agents, "p50"), ms(mine), "ms", ratio(mine, base), "<= 2 x", mine <= 2*base)
	for _, s := range shelves {
		b.table.add(fmt.Sprintf(what, s.agents, "p99"), ms(percentile(s.took, 0.99)), "ms", 0, "")
	}
	return nil
}

// fillShelf makes a database with n agents.
func fillShelf(ctx context.Context, db *database, n int) (*shelf, error) {
	url, err := db.Create(ctx)
	if err != nil {
		return nil, err
	}
	store, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	s := &shelf{agents: n, store: store, node: string(claybot.NewID())}
	now := claybot.Now()
	for made := 0; made < n; {
		batch := make([]claybot.Agent, min(1000, n-made))
		for i := range batch {
			batch[i] = claybot.Agent{ID: shelfAgent(made + i), Descriptor: claybot.User("telegram", fmt.Sprint(made+i), fmt.Sprint(made+i)), CreatedAt: now}
		}
		if err := store.IndexAgents(ctx, batch...); err != nil {
			return s, err
		}
		made += len(batch)
	}
	if _, err := db.Query(ctx, url, "VACUUM ANALYZE"); err != nil { // as the server does by itself after a while
		return s, err
	}
	_, err = store.RenewMember(ctx, storage.Member{ID: s.node, Name: "bench", Version: "bench", Started: now}, time.Hour)
	return s, err
}

func shelfAgent(n int) claybot.AgentID { return claybot.AgentID(fmt.Sprintf("c%023d", n)) }

// try lets one agent have something to do, and times how a node gets it.
func (s *shelf) try(ctx context.Context, n int) error {
	id := shelfAgent(n * 7919 % s.agents)
	m := claybot.AgentMessage{ID: claybot.MessageID(fmt.Sprint("bench/", n)), Type: claybot.MessageUser, Text: "hello", At: claybot.Now()}
	if _, err := s.store.Post(ctx, storage.Posting{To: id, Message: m}); err != nil {
		return err
	}
	began := time.Now()
	acquired, _, err := s.store.Acquire(ctx, s.node, time.Minute, 1, 10)
	took := time.Since(began)
	if err != nil {
		return err
	}
	if len(acquired) != 1 || acquired[0].Lease.Agent != id {
		return fmt.Errorf("%d agents were due instead of %s", len(acquired), id)
	}
	s.took = append(s.took, took)
	_, err = s.store.Settle(ctx, acquired[0].Lease, m.ID, storage.Settlement{Reason: "bench"})
	return err
}
