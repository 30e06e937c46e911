package configs

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe or a device in the place of the file is refused at once: a read of it may have no end.
func TestIrregularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), FileName)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, "/dev/zero", "/dev/null"} {
		done := make(chan error, 1)
		go func() {
			_, _, err := Load(path, environ(nil))
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), path+": is not a regular file") {
				t.Errorf("%s: %v", path, err)
			}
		case <-time.After(time.Minute): // only of a hang
			t.Errorf("%s is waited for", path)
		}
	}
}
