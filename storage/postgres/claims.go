package postgres

import (
	"context"
	"sync"

	"github.com/claybot/claybot/storage"
)

// A kept set is claims that this process has yielded while it was the only node: they
// stay its own, so that it need not ask for them again, until another node comes.
type kept struct {
	mu     sync.Mutex
	claims map[string]storage.Claim
}

// mostKept bounds how many claims a node keeps.
const mostKept = 10_000

// take returns a claim that node kept.
func (k *kept) take(node, name string) (storage.Claim, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.claims[name]
	if !ok || c.Member != node {
		return storage.Claim{}, false
	}
	delete(k.claims, name)
	return c, true
}

// put keeps a claim, if there is room.
func (k *kept) put(c storage.Claim) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.claims) >= mostKept {
		return false
	}
	if k.claims == nil {
		k.claims = make(map[string]storage.Claim)
	}
	k.claims[c.Name] = c
	return true
}

func (k *kept) all() []storage.Claim {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]storage.Claim, 0, len(k.claims))
	for _, c := range k.claims {
		all = append(all, c)
	}
	k.claims = nil
	return all
}

// Claim implements storage.Claims. A node that was alone when it yielded the claim
// has it still.
func (db *DB) Claim(ctx context.Context, node, name string) (storage.Claim, error) {
	if c, ok := db.kept.take(node, name); ok {
		return c, nil
	}
	return db.Store.Claim(ctx, node, name)
}

// Yield implements storage.Claims. While no other node is there, there is nobody to
// yield to.
func (db *DB) Yield(ctx context.Context, c storage.Claim) error {
	if self, others := db.mates.get(); others == 0 && self == c.Member && db.kept.put(c) {
		return nil
	}
	return db.Store.Yield(ctx, c)
}

// yieldKept gives up what was kept, because another node is there now. What
// cannot be given up is tried again with the next beat. One that was claimed anew
// meanwhile has another token and stays.
func (db *DB) yieldKept(ctx context.Context, node string) {
	all := db.kept.all()
	if len(all) == 0 {
		return
	}
	names, tokens := make([]string, len(all)), make([]int64, len(all))
	for i, c := range all {
		names[i], tokens[i] = storable(c.Name), c.Token
	}
	_, err := db.vitalPool.Exec(ctx, `UPDATE claims c SET node = '', at = $1 FROM unnest($2::text[], $3::bigint[]) k (name, token)
		WHERE c.name = k.name AND c.token = k.token AND c.node = $4`, db.dialect.Clock(), names, tokens, node)
	if err != nil {
		db.log.Debug("cannot yield what was kept; trying again", "err", err)
		for _, c := range all {
			db.kept.put(c)
		}
	}
}
