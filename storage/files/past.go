package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/claybot/claybot"
)

// Past implements storage.Histories. It holds one chunk of the file, or one line if that is
// longer, and keeps no writer waiting while it reads.
func (s *Store) Past(ctx context.Context, id claybot.AgentID, fn func(claybot.Record) bool) error {
	var f File
	var size int64
	err := s.with(ctx, id, func(r *resident) error {
		file, err := s.fs.Open(s.dir(id)+"/history.jsonl", os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := file.Stat()
		if err != nil {
			_ = file.Close() // nothing was written
			return err
		}
		if f, size = file, info.Size(); r.cut >= 0 {
			size = min(size, r.cut)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("past of agent %s: %w", id, err)
	}
	if f == nil {
		return nil
	}
	defer func() { _ = f.Close() }() // nothing was written
	for line, err := range backwards(f, size) {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("past of agent %s: %w", id, err)
		}
		record, err := decodeLine(bytes.TrimSpace(line.text))
		if err == nil && !fn(record) {
			return nil
		}
	}
	return nil
}
