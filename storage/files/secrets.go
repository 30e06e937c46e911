package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/claybot/claybot/storage"
)

// Secrets stores secrets in a directory that only its owner can read, a file for each name. Several
// processes may use it.
type Secrets struct {
	dir string
	mu  sync.Mutex
}

// NewSecrets stores secrets in dir, which is created when it is needed.
func NewSecrets(dir string) *Secrets { return &Secrets{dir: dir} }

var _ storage.Secrets = (*Secrets)(nil)

// Get implements storage.Secrets. It refuses a file that others can read.
func (s *Secrets) Get(name string) ([]byte, error) {
	if err := storage.CheckSecretName(name); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, name+".json")
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read a secret: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others; remove it and log in again", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a secret: %w", err)
	}
	return b, nil
}

// Set implements storage.Secrets.
func (s *Secrets) Set(name string, secret []byte) error {
	if err := storage.CheckSecretName(name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := os.MkdirAll(s.dir, 0o700)
	if err == nil {
		err = osFS{}.SyncDir(filepath.Dir(s.dir))
	}
	if err == nil {
		err = s.replace(name, secret)
	}
	if err != nil {
		return fmt.Errorf("store a secret: %w", err)
	}
	return nil
}

// replace writes to a new file, because two processes may do so at the same time.
func (s *Secrets) replace(name string, secret []byte) error {
	tmp, err := os.CreateTemp(s.dir, "."+name+"-*") // of mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(secret)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(s.dir, name+".json"))
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return osFS{}.SyncDir(s.dir)
}
