package postgres

import (
	"context"
	"sync"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// Receipts are stored in groups: while a transaction stores some, those that arrive
// meanwhile wait for the next one. So a member under load needs few transactions for them,
// and a receipt that comes alone waits for no other.
type receipts struct {
	mu      sync.Mutex
	waiting []*receipt
	busy    bool // a goroutine stores receipts
}

// mostReceipts bounds the receipts of one transaction.
const mostReceipts = 128

// A receipt is one that waits for its transaction.
type receipt struct {
	relational.Sent
	stored chan bool // receives once: whether it was stored
}

// markSent is relational.Dialect.MarkSent. It locks the claims first, as Claim does. It
// leaves out what another transaction has locked, so that the others need not wait for it.
func markSent(list []relational.Sent) (q string, args []any) {
	n := len(list)
	ids, dests, texts, names, nodes, tokens := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]int64, n)
	for i, s := range list {
		ids[i], dests[i], texts[i] = storable(s.ID), storable(s.Dest), storable(s.Receipt)
		names[i], nodes[i], tokens[i] = storable(s.Claim.Name), storable(s.Claim.Member), s.Claim.Token
	}
	return `WITH r AS (
		SELECT * FROM unnest(CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS TEXT[]), CAST(? AS BIGINT[]))
			AS r (id, dest, receipt, name, node, token)
	), held AS (
		SELECT c.name FROM claims c JOIN r ON c.name = r.name AND c.node = r.node AND c.token = r.token ORDER BY c.name FOR UPDATE OF c SKIP LOCKED
	), free AS (
		SELECT o.id, r.receipt FROM outbox o JOIN r ON o.id = r.id AND o.dest = r.dest
			WHERE o.state = 'attempted' AND r.name IN (SELECT name FROM held) FOR UPDATE OF o SKIP LOCKED
	) UPDATE outbox o SET state = 'sent', open = 0, due_at = 0, receipt = coalesce(nullif(f.receipt, ''), o.receipt)
		FROM free f WHERE o.id = f.id AND o.state = 'attempted' RETURNING o.id`,
		[]any{ids, dests, texts, names, nodes, tokens}
}

// Resolve implements storage.Outbox. A receipt that cannot be stored with others is stored
// alone.
func (db *DB) Resolve(ctx context.Context, claim storage.Claim, id string, res storage.Resolution) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if sent, ok := relational.SentBy(claim, id, res); ok && <-db.receive(ctx, sent) {
		return nil
	}
	return db.Store.Resolve(ctx, claim, id, res)
}

// receive queues a receipt and returns the channel that tells whether it was stored.
func (db *DB) receive(ctx context.Context, sent relational.Sent) <-chan bool {
	x := &receipt{sent, make(chan bool, 1)}
	db.receipts.mu.Lock()
	defer db.receipts.mu.Unlock()
	db.receipts.waiting = append(db.receipts.waiting, x)
	if !db.receipts.busy {
		db.receipts.busy = true
		go db.storeReceipts(context.WithoutCancel(ctx)) // ends when none waits
	}
	return x.stored
}

// storeReceipts stores all receipts that wait.
func (db *DB) storeReceipts(ctx context.Context) {
	for {
		db.receipts.mu.Lock()
		group := db.receipts.waiting
		if len(group) > mostReceipts {
			group = group[:mostReceipts]
		}
		db.receipts.waiting = db.receipts.waiting[len(group):]
		db.receipts.busy = len(group) > 0
		db.receipts.mu.Unlock()
		if len(group) == 0 {
			return
		}
		list := make([]relational.Sent, len(group))
		for i, x := range group {
			list[i] = x.Sent
		}
		marked, err := db.MarkSent(ctx, list)
		if err != nil {
			db.log.Debug("failed to store receipts together, storing each alone", "receipts", len(list), "err", err)
		}
		for _, x := range group {
			x.stored <- marked[x.ID]
		}
	}
}
