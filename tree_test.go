package claybot_test

import (
	"io/fs"
	"path/filepath"
	"testing"
)

// A file larger than this does not belong into a repository of source texts.
const largestFile = 1 << 20

// TestNoLargeFiles finds binaries that were built into the tree.
func TestNoLargeFiles(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path == "bin" || path == "dist" || name == ".git" || name == ".claybot" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Size() > largestFile {
			t.Errorf("%s has %d bytes", path, info.Size())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
