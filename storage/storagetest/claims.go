package storagetest

import (
	"context"
	"sync"

	"github.com/claybot/claybot/storage"
)

// Claims are those of a store that several members share, in memory. The zero value is
// ready to use, and every node is there.
type Claims struct {
	mu  sync.Mutex
	has map[string]string
}

var _ storage.Claims = (*Claims)(nil)

// Claim implements storage.Claims.
func (c *Claims) Claim(_ context.Context, node, name string) (storage.Claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if has := c.has[name]; has != "" && has != node {
		return storage.Claim{}, storage.ErrHeld
	}
	if c.has == nil {
		c.has = make(map[string]string)
	}
	c.has[name] = node
	return storage.Claim{Name: name, Member: node}, nil
}

// Yield implements storage.Claims. It ends the claim of any node.
func (c *Claims) Yield(_ context.Context, x storage.Claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.has, x.Name)
	return nil
}

// Holder implements storage.Claims.
func (c *Claims) Holder(_ context.Context, name string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.has[name], nil
}
