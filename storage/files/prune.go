package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.HistoryPruner = (*Store)(nil)

// PruneHistories implements storage.HistoryPruner. It leaves out histories that are open or
// damaged.
func (s *Store) PruneHistories(ctx context.Context, before claybot.Time) error {
	err := eachEntry(s.fs, s.root, func(e fs.DirEntry) error {
		id := claybot.AgentID(e.Name())
		if id.Validate() != nil || !e.IsDir() {
			return nil
		}
		err := context.Cause(ctx)
		if err == nil {
			err = s.pruneHistory(ctx, id, before)
		}
		switch {
		case err != nil && (ctx.Err() != nil || storage.ClassOf(err) == storage.ClassStore):
			return fmt.Errorf("agent %s: %w", id, err)
		case err != nil:
			s.log.Error("failed to prune history", "agent", id, "err", err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("prune histories: %w", err)
	}
	return s.SaveEnds(ctx)
}

func (s *Store) pruneHistory(ctx context.Context, id claybot.AgentID, before claybot.Time) error {
	old, err := s.beginsBefore(id, before)
	if !old || err != nil {
		return err
	}
	err = s.with(ctx, id, func(r *resident) error {
		if r.writer != nil || r.cut >= 0 {
			return nil // the next time
		}
		return s.shorten(ctx, r, before)
	})
	return storage.Ignore(err, storage.ErrNotFound) // it was deleted in the meantime
}

// beginsBefore reports whether the first line of a history is from before a time, or cannot
// be read.
func (s *Store) beginsBefore(id claybot.AgentID, before claybot.Time) (bool, error) {
	f, err := s.fs.Open(s.dir(id)+"/history.jsonl", os.O_RDONLY)
	if err != nil {
		return false, storage.Ignore(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }() // nothing was written
	line, err := bufio.NewReader(io.NewSectionReader(f, 0, 1<<62)).ReadBytes('\n')
	if err != nil {
		return false, storage.Ignore(err, io.EOF)
	}
	rec, err := decodeLine(bytes.TrimSuffix(line, []byte("\n")))
	return err != nil || rec.At < before, nil
}

// shorten removes the old beginning of a history. It needs the gate.
func (s *Store) shorten(ctx context.Context, r *resident, before claybot.Time) error {
	end, err := s.recorded(ctx, r)
	if err != nil {
		return err
	}
	f, err := s.fs.Open(s.dir(r.id)+"/history.jsonl", os.O_RDONLY)
	if err != nil {
		return storage.Ignore(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	t, err := readTail(f, size, end.marker)
	if err != nil || t.open || t.damages > 0 || t.torn.size > 0 || t.cut && end.CRC != "" || size < end.Size {
		return err // damage is mended first, when the history is opened
	}
	var added []byte
	limit := t.from
	if s.idle(ctx, r.id, t, before) {
		limit = size
		if added, err = new(encoder).linesAt([]claybot.Record{storage.Expired(claybot.Now())}, end.Base+size); err != nil {
			return err
		}
	}
	cut, results, err := oldLines(f, r.id, limit, before)
	if err != nil || cut == 0 {
		return err
	}
	if err := s.removeBeginning(r, f, end.after(t, cut, added), span{cut, size - cut}, added); err != nil {
		return err
	}
	for _, name := range results {
		err = errors.Join(err, s.fs.Remove(s.dir(r.id)+"/results/"+name))
	}
	return err
}

// idle reports whether the newest record of an agent without work is from before a time.
func (s *Store) idle(ctx context.Context, id claybot.AgentID, t tail, before claybot.Time) bool {
	if len(t.records) == 0 || t.records[len(t.records)-1].At >= before {
		return false
	}
	e, err := s.index.IndexedAgentByID(ctx, id)
	return err == nil && !e.Busy
}

// oldLines returns where the first line of a history is that is not from before a time, limit
// at most, and the results that the lines before it name.
func oldLines(f io.ReaderAt, id claybot.AgentID, limit int64, before claybot.Time) (cut int64, results []string, err error) {
	lines := bufio.NewReaderSize(io.NewSectionReader(f, 0, limit), chunk)
	for cut < limit {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return 0, nil, err
		}
		rec, err := decodeLine(bytes.TrimSuffix(line, []byte("\n"))) // an unreadable one is as old as those around it
		if err == nil && rec.At >= before {
			break
		}
		if name := storage.SavedResult(id, rec); name != "" {
			results = append(results, name)
		}
		cut += int64(len(line))
	}
	return cut, results, nil
}

// after returns the marker of a history without its first cut bytes; added is the line that
// takes the place of all others, if any.
func (e ending) after(t tail, cut int64, added []byte) marker {
	m := marker{Seq: e.Seq + 1, Base: e.Base + cut}
	switch {
	case len(added) > 0:
		m.CRC = lineSum(added)
	case t.found != nil:
		m.Offset, m.CRC = t.found.Offset-cut, t.found.CRC
	case e.Offset >= cut:
		m.Offset, m.CRC = e.Offset-cut, e.CRC
	}
	return m
}

// removeBeginning replaces a history by a part of it and a line. It first records where the
// conversation begins then: that is true of the old file as well, in which the start is
// behind it. It needs the gate.
func (s *Store) removeBeginning(r *resident, f File, m marker, rest span, added []byte) error {
	path := s.dir(r.id) + "/history.jsonl"
	err := s.copyPart(f, path+".new", rest, added)
	if err == nil {
		was := r.marker
		r.marker = m
		if err = s.writeState(r, s.residents.agent(r).State); err != nil {
			r.marker, r.unsure = was, true
		}
	}
	if err == nil {
		err = s.fs.Rename(path+".new", path)
	}
	if err != nil {
		_ = s.fs.Remove(path + ".new") // only waste; the next time overwrites it
		return err
	}
	s.tails.Take(r.id)
	s.endings.note(r.id, ending{marker: m, Size: rest.size + int64(len(added))})
	return s.fs.SyncDir(s.dir(r.id))
}

// copyPart makes a file of a part of f and a line.
func (s *Store) copyPart(f File, name string, part span, added []byte) error {
	to, err := s.fs.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, io.NewSectionReader(f, part.off, part.size))
	if err == nil {
		err = writeAll(to, added)
	}
	if err == nil {
		err = to.Sync()
	}
	return errors.Join(err, to.Close())
}
