package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/claybot/claybot/lazyregexp"
)

// Secrets stores what claybot got itself in place of an operator: logins at MCP servers, tokens
// that Slack rotates. Each has a name that CheckSecretName takes. The bytes are secret.
type Secrets interface {
	// Get returns nil, and no error, for a name without a secret.
	Get(name string) ([]byte, error)
	// Set replaces a secret whole or not at all. It is durable when Set returns nil.
	Set(name string, secret []byte) error
}

// SecretTurns are Secrets that several processes share: they take turns in renewing one, because
// many servers accept what a renewal needs only once.
type SecretTurns interface {
	// Turn waits until no other process renews the secret, or ctx ends.
	Turn(ctx context.Context, name string) (done func(), err error)
}

// SecretTurnLost is how long a turn lasts whose process is gone, by the clock of the process that
// waits.
const SecretTurnLost = time.Minute

const (
	secretTime = 5 * time.Second        // that a question to the store may take
	turnAgain  = 250 * time.Millisecond // how often a turn is asked for
)

var secretName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// CheckSecretName returns an error for a name that can be no part of a path.
func CheckSecretName(name string) error {
	if !secretName.MatchString(name) {
		return fmt.Errorf("invalid name of a secret: %.40q", name)
	}
	return nil
}

// TreeSecrets stores secrets in a Tree, as <folder>/<name>.json, for all members that share it.
type TreeSecrets struct {
	tree   Tree
	folder string
}

// NewTreeSecrets stores secrets in a folder of a Tree.
func NewTreeSecrets(tree Tree, folder string) *TreeSecrets { return &TreeSecrets{tree, folder} }

var (
	_ Secrets     = (*TreeSecrets)(nil)
	_ SecretTurns = (*TreeSecrets)(nil)
)

func (t *TreeSecrets) path(name, end string) (string, error) {
	return t.folder + "/" + name + end, CheckSecretName(name)
}

// Get implements Secrets.
func (t *TreeSecrets) Get(name string) ([]byte, error) {
	path, err := t.path(name, ".json")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	found, err := t.tree.Read(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("read a secret: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0].Body, nil
}

// Set implements Secrets.
func (t *TreeSecrets) Set(name string, secret []byte) error {
	path, err := t.path(name, ".json")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	if _, err := EditFile(ctx, t.tree, path, func(TreeFile) ([]byte, error) { return secret, nil }); err != nil {
		return fmt.Errorf("store a secret: %w", err)
	}
	return nil
}

// Turn implements SecretTurns: the process that creates the file <folder>/<name>.turn has it.
func (t *TreeSecrets) Turn(ctx context.Context, name string) (done func(), err error) {
	path, err := t.path(name, ".turn")
	if err != nil {
		return nil, err
	}
	var seen int64 // the version that others have, since begun
	begun := time.Now()
	was := int64(0) // the one to replace; -1: none, but wait
	for {
		version, err := t.tree.Write(ctx, path, []byte(time.Now().UTC().Format(time.RFC3339Nano)), was)
		if err == nil {
			return func() { t.end(path, version) }, nil
		}
		if !errors.Is(err, ErrStale) {
			return nil, fmt.Errorf("renew a secret: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(turnAgain):
		}
		found, err := t.tree.Read(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("renew a secret: %w", err)
		}
		was = 0
		if len(found) == 0 {
			continue
		}
		if found[0].Version != seen {
			seen, begun = found[0].Version, time.Now()
		}
		if time.Since(begun) >= SecretTurnLost {
			was = seen
		} else {
			was = -1
		}
	}
}

func (t *TreeSecrets) end(path string, version int64) {
	ctx, cancel := context.WithTimeout(context.Background(), secretTime)
	defer cancel()
	_ = t.tree.Remove(ctx, path, version) // else it is over in SecretTurnLost
}
