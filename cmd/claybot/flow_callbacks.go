package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors/webhook"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// callbacksPath is where programs call workflows that wait for them.
const callbacksPath = "/callbacks/"

// callbacksFolder is the folder of the secret with which addresses are made, callbacksSecret its name.
const (
	callbacksFolder = "flows"
	callbacksSecret = "callbacks"
)

// A callbackDesk makes the addresses that programs call, and takes their calls. An address holds a sum that only
// the secret makes, which all members share.
type callbackDesk struct {
	*daemon
	mu  sync.Mutex
	key []byte
}

// secret returns the secret, which it makes at first.
func (d *callbackDesk) secret(ctx context.Context) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key != nil {
		return d.key, nil
	}
	kept := d.stores.secrets(callbacksFolder)
	if turns, ok := kept.(storage.SecretTurns); ok {
		done, err := turns.Turn(ctx, callbacksSecret)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	key, err := kept.Get(callbacksSecret)
	if err == nil && len(key) == 0 {
		text, _ := json.Marshal(rand.Text() + rand.Text()) // a text always encodes
		key, err = text, kept.Set(callbacksSecret, text)
	}
	if err != nil {
		return nil, fmt.Errorf("the secret of callbacks: %w", err)
	}
	d.key = key
	return key, nil
}

// sum is the part of an address that cannot be guessed.
func (d *callbackDesk) sum(ctx context.Context, run, wait string) (string, error) {
	key, err := d.secret(ctx)
	if err != nil {
		return "", err
	}
	h := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(h, "%s/%s", run, wait) // a hash takes everything
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)), nil
}

// address is flow.Config.Address.
func (d *callbackDesk) address(ctx context.Context, run claybot.RunID, wait string) (string, error) {
	base := baseURL(*d.config.Load(), d.listeners.addr())
	if base == "" {
		return "", errors.New("no program can call back: http.addr is off, and there is no http.public_url")
	}
	sum, err := d.sum(ctx, string(run), wait)
	return base + callbacksPath + string(run) + "/" + wait + "/" + sum, err
}

// routes are where calls arrive.
func (d *callbackDesk) routes() []web.Route {
	return []web.Route{{Pattern: "POST " + callbacksPath + "{run}/{wait}/{sum}", Scope: web.Anyone, Raw: true, Body: flows.MaxOutput + 1, Handler: &webhook.Callbacks{
		Limit: flows.MaxOutput - 64, // what a node may put out
		Known: func(ctx context.Context, run, wait, sum string) (bool, error) {
			want, err := d.sum(ctx, run, wait)
			return hmac.Equal([]byte(sum), []byte(want)), err
		},
		Take: d.take,
	}}}
}

// take gives a run what was sent to it.
func (d *callbackDesk) take(ctx context.Context, id, wait string, value json.RawMessage) error {
	run, err := d.system.Overview.RunByID(ctx, claybot.RunID(id))
	if errors.Is(err, storage.ErrNotFound) {
		return webhook.ErrLate
	}
	if err != nil {
		return err
	}
	took, err := d.system.Control.Call(ctx, run, flow.CallbackID(run.ID, wait), value)
	switch {
	case err != nil:
		d.log.Error("failed to store a call to a workflow; its sender has to repeat it", "run", run.ID, "err", err)
		return err
	case took == agentsystem.CallAgain:
		return webhook.ErrCalled
	case took == agentsystem.CallLate:
		return webhook.ErrLate
	}
	return nil
}
