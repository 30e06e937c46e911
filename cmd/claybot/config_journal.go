package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/claybot/claybot/configs"
)

// madeLine is the line of the history behind changes that are in the file.
const madeLine = "{\"made\":true}\n"

// record replaces the text of the file, which is locked, and adds changes to the history, with their time and author.
// They stand there before the file has them, and madeLine follows: after a crash between any two steps, the text of the
// file says whether they were made, see pending.
func (f *configFile) record(made []change, next []byte) (recorded bool, err error) {
	recorded, end, err := f.announce(made)
	if err != nil {
		return false, err
	}
	if err := f.replace(next); err != nil {
		return false, errors.Join(err, f.log.Truncate(end))
	}
	if recorded {
		_, _ = f.log.WriteString(madeLine) // else settle writes it
	}
	return recorded, nil
}

// announce adds changes that are about to be made to the history, which ended at end. recorded is false where it cannot
// be written; then it stays as it was.
func (f *configFile) announce(made []change) (recorded bool, end int64, err error) {
	var lines []byte
	for i := range made {
		made[i].At, made[i].By, made[i].From = time.Now().UTC().Truncate(time.Second), f.by, configs.VersionOf(f.text)
		line, err := json.Marshal(made[i])
		if err != nil {
			return false, 0, err
		}
		lines = append(append(lines, line...), '\n')
	}
	if end, err = f.log.Seek(0, io.SeekEnd); err != nil {
		return false, 0, err
	}
	var last [1]byte
	if _, err := f.log.ReadAt(last[:], end-1); err == nil && last[0] != '\n' { // a power cut may have left half a line
		lines = append([]byte{'\n'}, lines...)
	}
	_, err = f.log.Write(lines)
	if err = errors.Join(err, f.log.Sync()); err != nil {
		return false, end, f.log.Truncate(end)
	}
	return true, end, nil
}

// pending returns where the changes at the end of a history begin which no madeLine follows, and whether they are in the
// file: it has another text than before them, with their values. all are the changes of the whole history.
func (f *configFile) pending(history []byte) (all []change, from int, made bool) {
	at, known := 0, 0
	from = len(history)
	for line := range bytes.Lines(history) {
		var c change
		switch {
		case string(line) == madeLine:
			from, known = len(history), len(all)
		case json.Unmarshal(line, &c) != nil || c.Key == "": // damaged
		case c.From == "": // of a claybot that wrote the file first
			all = append(all, c)
			from, known = len(history), len(all)
		default:
			if known < len(all) && all[known].From != c.From { // the file went on from those
				known = len(all)
			}
			if known == len(all) {
				from = at
			}
			all = append(all, c)
		}
		at += len(line)
	}
	made = known < len(all) && all[len(all)-1].From != configs.VersionOf(f.text) && f.has(all[known:])
	if !made {
		all = all[:known]
	}
	for i := range all {
		all[i].From = ""
	}
	return all, from, made
}

// has reports whether the file has the values of changes.
func (f *configFile) has(changes []change) bool {
	return !slices.ContainsFunc(changes, func(c change) bool { return orNone(written(f.text, c.Key)) != orNone(c.After) })
}

// settle ends what a crash has left in the history of the file, which is locked: changes that are in the file stay,
// others go.
func (f *configFile) settle() error {
	history, err := io.ReadAll(io.NewSectionReader(f.log, 0, 1<<62))
	if err != nil {
		return err
	}
	switch _, from, made := f.pending(history); {
	case made:
		_, err = f.log.WriteString(madeLine)
	case from < len(history):
		err = f.log.Truncate(int64(from))
	}
	return err
}

// leftovers calls do with the names of the files that a crash of a change has left, or a change that is being made: of the
// text of the file, and of secrets, in their folder.
func (f *configFile) leftovers(do func(in folder, names []string)) {
	if dir, err := openFolder(f.path); err == nil {
		do(dir, dir.leftovers(filepath.Base(f.path)))
		dir.close()
	}
	dir, err := openFolder(f.named)
	if err != nil {
		return
	}
	defer dir.close()
	if info, err := dir.Lstat(f.secretsName()); err == nil && info.IsDir() {
		if below, err := dir.folder(f.secretsName()); err == nil {
			do(below, below.leftovers(""))
			below.close()
		}
	}
}

// sweep removes what a crash of a change has left beside the file, which is locked. What cannot be removed stays.
func (f *configFile) sweep() {
	f.leftovers(func(in folder, names []string) {
		for _, name := range names {
			_ = in.Remove(name)
		}
	})
}

// tidy removes what a crash of a change has left beside the configuration file, unless it is being changed.
func (e *env) tidy() {
	f, err := e.configFile()
	if err != nil {
		return // the load says why
	}
	left := 0
	f.leftovers(func(_ folder, names []string) { left += len(names) })
	now, cancel := context.WithCancel(context.Background())
	cancel() // lock waits for nothing
	if left > 0 && f.lock(now) == nil {
		f.unlock()
	}
}

// history returns the changes of the file, the oldest first. Lines that are damaged are left out.
func (f *configFile) history() ([]change, error) {
	dir, err := openFolder(f.path)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	b, err := dir.ReadFile(filepath.Base(f.historyPath()))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all, _, _ := f.pending(b)
	return all, nil
}
