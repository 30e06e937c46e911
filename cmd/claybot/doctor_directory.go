package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
)

const (
	leastSpace  = 100 << 20 // bytes
	littleSpace = 1 << 30
	syncs       = 9
	slowSync    = 50 * time.Millisecond
	mostModes   = 5000             // files whose modes are looked at
	lookTime    = 20 * time.Second // for the database
)

// directory looks at the data directory. Every node has one.
func (d *doctor) directory(ctx context.Context) {
	const what = "data directory"
	dir := d.config.DataDir
	there, holder, err := files.Look(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.say(what, levelProblem, dir+" cannot be read by this user", "run the doctor as the user who runs claybot, or give the directory to that user with chown")
		return
	case errors.Is(err, files.ErrUnfinished):
		d.say(what, levelProblem, dir+" is a copy that was not finished", "remove it and copy again")
		return
	case err != nil:
		d.advice(what, err)
		return
	case !there:
		d.missing(dir)
		return
	case holder != "":
		d.say(what, levelOK, dir+" is in use by "+holder, "")
	default:
		d.say(what, levelOK, dir+" is there; no process uses it now", "")
	}
	d.boot(dir, holder != "")
	d.limits(d.config.Node.MaxRuns)
	d.space(dir)
	d.syncs(dir)
	d.modes(dir)
	if !d.config.Storage.Shared() {
		d.sqlite(ctx, filepath.Join(dir, "claybot.db"), holder == "")
		d.copies(filepath.Join(dir, copiesDir))
	}
}

// copies looks at the copies of the database.
func (d *doctor) copies(dir string) {
	const what = "copies"
	all, err := copies(dir)
	switch {
	case err != nil:
		d.say(what, levelWarning, "they cannot be listed: "+reason(err), "")
	case d.config.Storage.Copies == 0:
		d.say(what, levelWarning, "claybot makes no copies of its database", "set storage.copies, or make backups, see docs/backup.md")
	case len(all) == 0:
		d.say(what, levelOK, "there are none yet; the daemon makes the first one an hour after its first start, then one every day at "+d.config.Storage.CheckAt, "")
	default:
		at, err := madeAt(all[0])
		if err != nil {
			d.say(what, levelWarning, all[0]+" cannot be read: "+reason(err), "")
			return
		}
		d.say(what, levelOK, fmt.Sprintf("%d in %s, the newest of %s", len(all), dir, at.UTC().Format("2006-01-02 15:04 UTC")), "")
	}
}

// boot looks whether claybot ended in order before.
func (d *doctor) boot(dir string, running bool) {
	const what = "last end"
	b, err := files.ReadBoot(dir)
	unclean := b.Unclean
	if !running && b.Started != 0 && !b.Closed {
		unclean++
	}
	switch {
	case err != nil:
		d.say(what, levelWarning, "the boot record cannot be read: "+reason(err), "nothing; the next start writes a new one")
	case unclean == 0:
		d.say(what, levelOK, "in order", "")
	case b.Starting != "":
		d.say(what, levelWarning, fmt.Sprintf("claybot died %s in a row, the last time while the connector %s was starting", count(unclean, "time"), b.Starting), "read the end of its log")
	default:
		d.say(what, levelWarning, fmt.Sprintf("claybot died %s in a row", count(unclean, "time")), "read the end of its log; with little memory, see the limits below")
	}
}

// missing looks whether the first start can make the directory.
func (d *doctor) missing(dir string) {
	const what = "data directory"
	above := filepath.Dir(filepath.Clean(dir))
	for { // the nearest one that is there
		info, err := os.Stat(above)
		if err == nil && !info.IsDir() {
			d.say(what, levelProblem, dir+" cannot be made: "+above+" is a file", "name another directory with CLAYBOT_DATA_DIR")
			return
		}
		if up := filepath.Dir(above); err != nil && up != above {
			above = up
			continue
		}
		break
	}
	probe, err := os.MkdirTemp(above, ".claybot-doctor-")
	if err != nil {
		d.say(what, levelProblem, dir+" cannot be made: "+reason(err), "let this user write to "+above+", or name another directory with CLAYBOT_DATA_DIR")
		return
	}
	_ = os.Remove(probe) // it was made a moment ago and is empty
	d.say(what, levelOK, dir+" is not there yet; the first start makes it", "")
	d.space(above)
}

// reason is why a call of the system failed, without the path of a probe.
func reason(err error) string {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

func (d *doctor) space(dir string) {
	st, err := diskOf(dir)
	if err != nil {
		d.say("disk", levelWarning, "how much space is left is not known: "+reason(err), "")
		return
	}
	free := fmt.Sprintf("%s of %s are free", size(st.Free), size(st.Total))
	switch {
	case st.Free < leastSpace:
		d.say("disk", levelProblem, free+": messages can soon not be stored any more", "make room where "+dir+" is")
	case st.Free < littleSpace:
		d.say("disk", levelWarning, free, "make room where "+dir+" is")
	default:
		d.say("disk", levelOK, free, "")
	}
}

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// syncs measures how long the disk takes to keep something for good.
func (d *doctor) syncs(dir string) {
	f, err := os.CreateTemp(dir, ".claybot-doctor-")
	if err != nil {
		d.say("writing", levelProblem, "nothing can be written to "+dir+": "+reason(err), "let this user write there, and see whether the disk is full or read-only")
		return
	}
	defer func() {
		_ = f.Close() // it is removed next
		_ = os.Remove(f.Name())
	}()
	took := make([]time.Duration, 0, syncs)
	for range syncs {
		began := time.Now()
		_, err := f.Write(make([]byte, 4096))
		if err == nil {
			err = f.Sync()
		}
		if err != nil {
			d.say("writing", levelProblem, "nothing can be kept in "+dir+": "+reason(err), "see whether the disk is full or broken")
			return
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	each := took[syncs/2]
	text := fmt.Sprintf("the disk takes %v to keep something", each.Round(10*time.Microsecond))
	if each > slowSync {
		d.say("writing", levelWarning, text+": every message waits for that", "put the data directory on a quicker disk")
		return
	}
	d.say("writing", levelOK, text, "")
}

// modes looks whether others may read what is private, or claybot may not.
func (d *doctor) modes(dir string) {
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 == 0 {
		d.say("file modes", levelOK, "only its owner may look into "+dir, "")
		return
	}
	open, seen := 0, 0
	first := ""
	errEnough := errors.New("enough were seen")
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is not open to others either
		}
		if seen++; seen > mostModes {
			return errEnough
		}
		info, err := entry.Info()
		if err != nil || info.Mode().Type() == fs.ModeSymlink || path == dir {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		if info.Mode().Perm()&0o077 != 0 && !entry.IsDir() {
			if open++; first == "" {
				first = path
			}
		}
		return nil
	})
	next := "run: chmod 700 " + dir
	switch {
	case open > 0:
		d.say("file modes", levelWarning, fmt.Sprintf("other users of this machine may read %s, among them %s", count(open, "file"), first), next)
	case err != nil && !errors.Is(err, errEnough):
		d.say("file modes", levelWarning, "the modes were not looked at: "+reason(err), next)
	default:
		d.say("file modes", levelWarning, "other users of this machine may list "+dir, next)
	}
}

// sqlite looks at the database of a data directory.
func (d *doctor) sqlite(ctx context.Context, path string, idle bool) {
	if _, err := os.Stat(path + sqlite.Restoring); err == nil && idle {
		d.say("claybot.db", levelProblem, "a restore was cut short", "run: claybot restore --data-dir "+d.config.DataDir)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s, err := sqlite.Look(ctx, path, idle)
	switch {
	case errors.Is(err, fs.ErrNotExist) && hasAgents(d.config.DataDir):
		d.say("claybot.db", levelProblem, "it is gone although there are agents; the next start makes a new one from their directories, and tells people", afterDamage(d.config.DataDir))
	case errors.Is(err, fs.ErrNotExist):
		d.say("claybot.db", levelOK, "there is none yet; the first start makes it", "")
	case errors.Is(err, storage.ErrDamaged):
		d.say("claybot.db", levelProblem, "it is damaged: "+err.Error(), afterDamage(d.config.DataDir))
	case err != nil && s.Version > s.Known:
		d.say("claybot.db", levelProblem, fmt.Sprintf("its schema is version %d and this claybot knows %d", s.Version, s.Known), "start the newer version of claybot, or a later one; nothing was changed")
	case errors.Is(err, storage.ErrBusy):
		d.say("claybot.db", levelWarning, "another process holds it", "run the doctor again in a moment")
	case err != nil:
		d.say("claybot.db", levelProblem, "it cannot be opened: "+err.Error(), "see whether this user may read it, and run the doctor as the user who runs claybot")
	case !s.Whole:
		d.say("claybot.db", levelOK, fmt.Sprintf("version %d, %s; it opens, and was too large to be read to its end", s.Version, size(s.Size)), "")
	case s.Version < s.Known:
		d.say("claybot.db", levelOK, fmt.Sprintf("version %d, %s; the next start makes it version %d", s.Version, size(s.Size), s.Known), "")
	default:
		d.say("claybot.db", levelOK, fmt.Sprintf("version %d, %s, whole", s.Version, size(s.Size)), "")
	}
}
