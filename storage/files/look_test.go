package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Looking tells what Lock would meet, and leaves no trace.
func TestLook(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if there, holder, err := Look(dir); there || holder != "" || err != nil {
		t.Errorf("nothing there: %v %q %v", there, holder, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("looking made it")
	}
	l, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if there, holder, err := Look(dir + "/"); !there || holder != fmt.Sprint("process ", os.Getpid()) || err != nil {
		t.Errorf("in use: %v %q %v", there, holder, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if there, holder, err := Look(dir); !there || holder != "" || err != nil {
			t.Errorf("free: %v %q %v", there, holder, err)
		}
	}
	if l, err = Lock(dir); err != nil { // looking has let it go
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // on purpose
		t.Fatal(err)
	}
	if there, _, err := Look(dir); !there || err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("open to all: %v %v", there, err)
	}
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Look(link + "/"); err == nil || !strings.Contains(err.Error(), "symlink") {
		t.Errorf("a symlink: %v", err)
	}
}
