package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// An Order says that an operator stopped a node.
type Order struct {
	By string       `json:"by" doc:"Who stopped it."`
	At claybot.Time `json:"at"`
}

// Orders are the stopped nodes. They are stored, so that they hold after a restart and for all
// members of a cluster. It is safe for concurrent use.
type Orders struct {
	store   storage.CheckpointSet
	storing sync.Mutex // held while the store works, so that what is read is never older than what was written

	mu      sync.Mutex
	stopped map[Key]Order
}

// NewOrders reads the stopped nodes from a store.
func NewOrders(ctx context.Context, store storage.CheckpointSet) (*Orders, error) {
	o := &Orders{store: store}
	_, err := o.Read(ctx)
	return o, err
}

// Read reads them again, and reports whether they have changed: another member has.
func (o *Orders) Read(ctx context.Context) (changed bool, err error) {
	o.storing.Lock()
	defer o.storing.Unlock()
	all, err := o.store.ListCheckpoints(ctx, storage.CheckpointStopped)
	if err != nil {
		return false, fmt.Errorf("read the stopped nodes: %w", err)
	}
	now := make(map[Key]Order, len(all))
	for _, c := range all {
		kind, name, _ := strings.Cut(strings.TrimPrefix(c.Key, storage.CheckpointStopped), "/")
		var order Order
		if json.Unmarshal([]byte(c.Value), &order) == nil { // otherwise it was started again
			now[Key{kind, name}] = order
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	changed = !maps.Equal(o.stopped, now)
	o.stopped = now
	return changed, nil
}

// Stop stores that a node is stopped, and reports whether it was not, or not known here.
func (o *Orders) Stop(ctx context.Context, k Key, by string) (changed bool, err error) {
	order := Order{By: by, At: claybot.Now()}
	b, err := json.Marshal(order)
	if err != nil {
		return false, fmt.Errorf("encode an order: %w", err)
	}
	return o.set(ctx, k, string(b), &order)
}

// Start stores that a node is not stopped, and reports whether it was, or was known to be here.
func (o *Orders) Start(ctx context.Context, k Key) (changed bool, err error) {
	return o.set(ctx, k, "", nil)
}

// set stores an order, nil for none, if there was none, or one.
func (o *Orders) set(ctx context.Context, k Key, value string, order *Order) (changed bool, err error) {
	o.storing.Lock()
	defer o.storing.Unlock()
	is, err := o.store.Checkpoint(ctx, storage.CheckpointStopped+k.String()) // another member may have changed it
	if err != nil {
		return false, fmt.Errorf("read what is stopped: %w", err)
	}
	changed = (is == "") == (value != "")
	var kept Order
	if !changed && json.Unmarshal([]byte(is), &kept) == nil {
		order = &kept
	}
	if changed {
		if err := o.store.SetCheckpoint(ctx, storage.CheckpointStopped+k.String(), value); err != nil {
			return false, fmt.Errorf("store what is stopped: %w", err)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.stopped[k]; known == (value == "") {
		changed = true // also where this member learns it only now
	}
	if order == nil {
		delete(o.stopped, k)
	} else {
		o.stopped[k] = *order
	}
	return changed, nil
}

// All returns the keys of the stopped nodes, in no order.
func (o *Orders) All() []Key {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.stopped))
}

// Stopped returns the order that stops a node; nil for none.
func (o *Orders) Stopped(k Key) *Order {
	o.mu.Lock()
	defer o.mu.Unlock()
	if order, is := o.stopped[k]; is {
		return &order
	}
	return nil
}
