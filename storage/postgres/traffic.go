package postgres

import (
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/claybot/claybot/storage"
)

// counters count what Traffic returns.
type counters struct {
	deadlocks, serialization, unique atomic.Int64 // repeated transactions
	agents, claims                   atomic.Int64 // taken over
	lost                             atomic.Int64 // notifications
	listens                          atomic.Int64 // successful LISTENs
	listening                        atomic.Bool
}

// repeated counts a transaction that is repeated after a conflict.
func (c *counters) repeated(err error) {
	switch codeOf(err) {
	case codeDeadlock:
		c.deadlocks.Add(1)
	case codeSerialization:
		c.serialization.Add(1)
	case codeUnique:
		c.unique.Add(1)
	}
}

// Traffic returns how this process uses the database. It does not query it.
func (db *DB) Traffic() storage.Traffic {
	c := &db.counters
	t := storage.Traffic{
		Pools: []storage.PoolTraffic{poolTraffic("work", db.pool), poolTraffic("renewals", db.vitalPool)},
		Retried: map[string]int64{
			storage.ConflictDeadlock: c.deadlocks.Load(), storage.ConflictSerialization: c.serialization.Load(), storage.ConflictUnique: c.unique.Load(),
		},
		AgentsTaken: c.agents.Load(), ClaimsTaken: c.claims.Load(), NotificationsLost: c.lost.Load(),
	}
	if db.notifier != nil {
		t.Listener = &storage.ListenerTraffic{Up: c.listening.Load(), Reconnects: max(0, c.listens.Load()-1)}
	}
	return t
}

func poolTraffic(name string, p *pgxpool.Pool) storage.PoolTraffic {
	s := p.Stat()
	return storage.PoolTraffic{
		Name: name, InUse: int(s.AcquiredConns()), Idle: int(s.IdleConns()), Max: int(s.MaxConns()),
		Acquired: s.AcquireCount(), Waited: s.EmptyAcquireCount(), WaitTime: s.EmptyAcquireWaitTime(),
	}
}
