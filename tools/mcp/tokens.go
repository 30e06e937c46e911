package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// Tokens keeps what Login got for each server. The bytes are secret. Get returns
// nil, and no error, for a server of which nothing is kept.
type Tokens interface {
	Get(server string) ([]byte, error)
	Set(server string, secret []byte) error
}

// FileTokens keeps tokens in a folder that only its owner can read, a file for
// each server. It may be used by several processes.
type FileTokens struct {
	dir string
	mu  sync.Mutex
}

// NewFileTokens keeps tokens in dir, which is made when it is needed.
func NewFileTokens(dir string) *FileTokens { return &FileTokens{dir: dir} }

var _ Tokens = (*FileTokens)(nil)

func (f *FileTokens) path(server string) (string, error) {
	if !serverName.MatchString(server) {
		return "", fmt.Errorf("%.40q is not the name of an MCP server", server)
	}
	return filepath.Join(f.dir, server+".json"), nil
}

// Get implements Tokens. A file that others can read is refused.
func (f *FileTokens) Get(server string) ([]byte, error) {
	path, err := f.path(server)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the tokens: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others; remove it and log in again", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	return b, nil
}

// Set implements Tokens: the file is replaced whole or not at all.
func (f *FileTokens) Set(server string, secret []byte) error {
	path, err := f.path(server)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("keep the tokens: %w", err)
	}
	tmp, err := os.CreateTemp(f.dir, "."+server+"-*") // of mode 0600
	if err != nil {
		return fmt.Errorf("keep the tokens: %w", err)
	}
	_, err = tmp.Write(secret)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("keep the tokens: %w", errors.Join(err, os.Remove(tmp.Name())))
	}
	return nil
}

// A Turner is Tokens that several processes share: they take turns in getting new
// ones, because many servers accept the secret for that only once.
type Turner interface {
	// Turn waits until no other process gets a new token for the server, or ctx ends.
	Turn(ctx context.Context, server string) (done func(), err error)
}

const (
	treeFolder = "mcp"
	treeTime   = 5 * time.Second // that a question to the store may take
	// turnAgain is how often a turn is asked for, and turnLost how long one lasts
	// whose process is gone, by the clock of the process that waits.
	turnAgain = 250 * time.Millisecond
	turnLost  = time.Minute
)

// TreeTokens keeps tokens in a Tree, as mcp/<server>.json, for all nodes that share
// it: a login on one is good on all.
type TreeTokens struct{ tree storage.Tree }

// NewTreeTokens keeps tokens in a Tree.
func NewTreeTokens(tree storage.Tree) *TreeTokens { return &TreeTokens{tree} }

var (
	_ Tokens = (*TreeTokens)(nil)
	_ Turner = (*TreeTokens)(nil)
)

func treePath(server, end string) (string, error) {
	if !serverName.MatchString(server) {
		return "", fmt.Errorf("%.40q is not the name of an MCP server", server)
	}
	return treeFolder + "/" + server + end, nil
}

// Get implements Tokens.
func (t *TreeTokens) Get(server string) ([]byte, error) {
	path, err := treePath(server, ".json")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	defer cancel()
	found, err := t.tree.Read(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return found[0].Body, nil
}

// Set implements Tokens: the file is replaced whole or not at all.
func (t *TreeTokens) Set(server string, secret []byte) error {
	path, err := treePath(server, ".json")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	defer cancel()
	if _, err := storage.EditFile(ctx, t.tree, path, func(storage.TreeFile) ([]byte, error) { return secret, nil }); err != nil {
		return fmt.Errorf("keep the tokens: %w", err)
	}
	return nil
}

// Turn implements Turner: the process that creates the file mcp/<server>.turn has it.
func (t *TreeTokens) Turn(ctx context.Context, server string) (done func(), err error) {
	path, err := treePath(server, ".turn")
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
		if !errors.Is(err, storage.ErrStale) {
			return nil, fmt.Errorf("get a new token: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(turnAgain):
		}
		found, err := t.tree.Read(ctx, path)
		if err != nil {
			return nil, fmt.Errorf("get a new token: %w", err)
		}
		was = 0
		if len(found) == 0 {
			continue
		}
		if found[0].Version != seen {
			seen, begun = found[0].Version, time.Now()
		}
		if time.Since(begun) >= turnLost {
			was = seen
		} else {
			was = -1
		}
	}
}

func (t *TreeTokens) end(path string, version int64) {
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	defer cancel()
	_ = t.tree.Remove(ctx, path, version) // else it is over in turnLost
}
