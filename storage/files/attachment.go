package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// referenceLimit is the maximum size of a reference with its escaped text, in
// bytes.
const referenceLimit = 8 * storage.TextLimit

// SaveFile implements storage.Files. The bytes are written to a temporary file
// without the gate of the agent, so a slow sender blocks no other and a large
// file needs no memory. Open removes temporary files left by a crash.
func (s *Store) SaveFile(ctx context.Context, id claybot.AgentID, f claybot.FileReference, content io.Reader, limit int64) (claybot.FileReference, error) {
	what := fmt.Sprintf("save a file of agent %s", id)
	if err := s.with(ctx, id, func(*resident) error { return nil }); err != nil { // before reading all bytes
		return claybot.FileReference{}, failed(what, err)
	}
	switch {
	case f.ID == "":
		f.ID = string(claybot.NewID())
	case claybot.AgentID(f.ID).Validate() != nil: // it is part of a path
		return claybot.FileReference{}, failed(what, fmt.Errorf("invalid file id %.64q", f.ID))
	default:
		kept, r, err := s.OpenFile(ctx, id, f.ID)
		if err == nil {
			return kept, r.Close()
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return claybot.FileReference{}, failed(what, err)
		}
	}
	f.Name, f.Source = storage.FileName(f.Name), ""
	f.Path = "agents/" + string(id) + "/attachments/" + f.ID
	var left error                                            // of removing what a failure leaves
	defer s.stamps.change()(&left)                            // a stamp would keep what a crash leaves of it
	tmp := s.root + "/" + newPrefix + string(claybot.NewID()) // unique, because two agents may receive the same file at once
	err := s.receive(tmp, &f, content, limit)
	if err == nil {
		err = s.with(ctx, id, func(*resident) error {
			err := s.attach(id, tmp, f)
			s.sent.add(id, f, err)
			return err
		})
	}
	if err != nil {
		left = s.fs.Remove(tmp) // only waste; the next Open removes it
		return claybot.FileReference{}, failed(what, err)
	}
	return f, nil
}

// receive writes content to the file tmp, syncs it, and sets the properties in
// f.
func (s *Store) receive(tmp string, f *claybot.FileReference, content io.Reader, limit int64) error {
	file, err := s.fs.Open(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	sum, start := sha256.New(), head{}
	f.Size, err = io.Copy(io.MultiWriter(file, sum, &start), io.LimitReader(content, limit+1))
	if err == nil && f.Size > limit {
		err = fmt.Errorf("more than %d bytes: %w", limit, storage.ErrTooMany)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.SHA256, f.Text = hex.EncodeToString(sum.Sum(nil)), ""
	if len(start) <= storage.TextLimit && storage.PlainText(start) {
		f.Text = string(start)
	}
	return errors.Join(file.Sync(), file.Close())
}

// A head is the beginning of what is written to it, one byte more than a text
// may have at most.
type head []byte

func (h *head) Write(b []byte) (int, error) {
	*h = append(*h, b[:min(len(b), storage.TextLimit+1-len(*h))]...)
	return len(b), nil
}

// attach moves the file tmp to the attachments of an agent. It needs the gate.
func (s *Store) attach(id claybot.AgentID, tmp string, f claybot.FileReference) error {
	reference, err := json.Marshal(f)
	if err != nil {
		return err
	}
	dir := s.dir(id) + "/attachments"
	if err := s.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := s.fs.SyncDir(s.dir(id)); err != nil { // it may be there since a try of which this failed
		return err
	}
	err = s.fs.Rename(tmp, dir+"/"+f.ID)
	if err == nil {
		err = replace(s.fs, dir, f.ID+".json", reference) // its presence says that the file is whole
	}
	if err != nil { // the id is not returned; leftovers are only waste
		_ = s.fs.Remove(dir + "/" + f.ID + ".json")
		_ = s.fs.Remove(dir + "/" + f.ID)
	}
	return err
}

// OpenFile implements storage.Files.
func (s *Store) OpenFile(ctx context.Context, id claybot.AgentID, file string) (claybot.FileReference, io.ReadCloser, error) {
	what := fmt.Sprintf("open file %.64q of agent %s", file, id)
	if claybot.AgentID(file).Validate() != nil { // it is part of a path
		return claybot.FileReference{}, nil, fmt.Errorf("%s: %w", what, storage.ErrNotFound)
	}
	var f claybot.FileReference
	var opened File
	err := s.with(ctx, id, func(*resident) error {
		dir := s.dir(id) + "/attachments/"
		reference, err := read(s.fs, dir+file+".json", referenceLimit)
		if errors.Is(err, fs.ErrNotExist) {
			return storage.ErrNotFound
		}
		if err != nil {
			return err
		}
		if err := json.Unmarshal(reference, &f); err != nil {
			return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
		}
		opened, err = s.fs.Open(dir+file, os.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			return storage.ErrNotFound
		}
		return err
	})
	if err != nil {
		return claybot.FileReference{}, nil, fmt.Errorf("%s: %w", what, err)
	}
	return f, attachment{io.NewSectionReader(opened, 0, f.Size), opened}, nil
}

// An attachment is an open file, read from its beginning.
type attachment struct {
	io.Reader
	io.Closer
}

// SaveResult atomically and durably writes text to
// agents/<id>/results/<call>.txt, and returns that path below the data
// directory. Every call id maps to a safe, distinct name.
func (s *Store) SaveResult(ctx context.Context, id claybot.AgentID, call, text string) (string, error) {
	name := storage.ResultName(call)
	err := s.with(ctx, id, func(*resident) error {
		dir := s.dir(id) + "/results"
		err := s.fs.Mkdir(dir)
		if err == nil {
			err = s.fs.SyncDir(s.dir(id))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return replace(s.fs, dir, name, []byte(text))
	})
	if err != nil {
		return "", failed(fmt.Sprintf("save a tool result of agent %s", id), err)
	}
	return "agents/" + string(id) + "/results/" + name, nil
}
