package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
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
	// Turn waits until nobody else gets a new token for the server, or ctx ends.
	Turn(ctx context.Context, server string) (done func(), err error)
}
