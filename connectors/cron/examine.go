package cron

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
)

// Examine returns what is wrong with the tasks in the folder of a data directory, in the words of a Cron.
// known reports whether a connector is configured. It changes nothing.
func Examine(folder string, zone *time.Location, known func(connector string) bool) ([]connectors.Problem, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := &table{cfg: &Config{Known: known}}
	var all []connectors.Problem
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		x := storage.TreeFile{Path: taskPath(e.Name())}
		if x.Body, x.Err = os.ReadFile(filepath.Join(folder, e.Name(), taskFile)); errors.Is(x.Err, fs.ErrNotExist) {
			continue // no task any more
		}
		var f file
		b.parse(e.Name(), &f, x, zone)
		all = append(all, f.notes...)
	}
	return all, nil
}
