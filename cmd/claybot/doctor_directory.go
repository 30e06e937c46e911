package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/web"
)

const (
	noSpace   = 1 << 20 // bytes
	syncs     = 9
	slowSync  = 50 * time.Millisecond
	mostModes = 5000             // files whose modes are checked
	mostAhead = time.Minute      // of the last start
	lookTime  = 20 * time.Second // for the database
)

// directory checks the data directory, which every cluster member has.
func (d *doctor) directory(ctx context.Context) bool {
	dir := d.config.DataDir
	there, holder, err := files.Look(dir)
	d.holder = holder
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.problem("data-dir-unreadable", "this user cannot read "+dir, "run the doctor as the user who runs claybot, or give the directory to that user with chown")
	case errors.Is(err, syscall.ENOTDIR): // of something above it
		d.missing(ctx, dir)
	case errors.Is(err, files.ErrUnfinished):
		text, next, _ := strings.Cut(err.Error(), "; ")
		d.problem("data-dir-unfinished", text, next)
	case err != nil:
		code := unsafeCode(dir)
		d.advice(code, err)
		if code == "data-dir-open-to-others" {
			d.offerClosing(dir)
		}
	case !there:
		d.missing(ctx, dir)
	case holder != "":
		d.opened = d.ok(dir + " is in use by " + holder)
	default:
		d.opened = d.ok(dir + " exists; no process uses it")
	}
	return d.opened
}

// missing checks whether the first start can create the directory.
func (d *doctor) missing(ctx context.Context, dir string) {
	above := filepath.Dir(filepath.Clean(dir))
	info, err := os.Stat(above)
	for err != nil && filepath.Dir(above) != above { // up to the nearest one that exists
		above = filepath.Dir(above)
		info, err = os.Stat(above)
	}
	if err == nil && !info.IsDir() {
		d.problem("data-dir-not-creatable", "cannot create "+dir+": "+above+" is a file", "set another directory with CLAYBOT_DATA_DIR")
		return
	}
	probe, err := os.MkdirTemp(above, ".claybot-doctor-")
	if err != nil {
		d.problem("data-dir-not-creatable", "cannot create "+dir+": "+reason(err), "let this user write to "+above+", or set another directory with CLAYBOT_DATA_DIR")
		return
	}
	_ = os.Remove(probe) // it is empty
	d.ok(dir + " does not exist yet; the first start creates it")
	d.what, d.config.DataDir = "disk", above
	d.space(ctx)
	d.config.DataDir = dir
}

// reason is why a system call failed, without the path of a probe.
func reason(err error) string {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

// lastEnd checks whether the last processes shut down cleanly.
func (d *doctor) lastEnd(context.Context) bool {
	b, err := files.ReadBoot(d.config.DataDir)
	unclean := b.Unclean
	if d.holder == "" && b.Started != 0 && !b.Closed && !b.Forced {
		unclean++
	}
	if ahead := b.Started.Time(); b.Started != 0 && time.Until(ahead) > mostAhead {
		d.warn("clock-off", "the clock of this machine is behind: claybot was started at "+moment(ahead)+", which is in the future",
			"set the clock with NTP: schedules, signatures and certificates depend on it")
	}
	crashed, log := crashes(unclean), "read the end of its log: claybot service logs, or the output of claybot serve"
	switch {
	case err != nil:
		return d.warn("record-unreadable", "cannot read the boot record: "+reason(err), "nothing; the next start writes a new one")
	case unclean == 0 && b.Forced:
		return d.ok("an operator ended it at once")
	case unclean == 0:
		return d.ok("clean shutdown")
	case b.Starting != "":
		return d.warn("crashed", crashed+", the last time while it started the connector "+b.Starting, log)
	}
	return d.warn("crashed", crashed, log+"; if memory is short, see the limits below")
}

// limits checks the limits of this user. A service may have others than this shell.
func (d *doctor) limits(context.Context) bool {
	l, most := readLimits(), d.config.Node.MaxRuns
	fit := l.runs(most)
	if fit < most {
		return d.warn("limits-low", fmt.Sprintf("%s: room for %d concurrent runs, %d are configured", l, fit, most),
			"raise the limit of memory or open files (systemd: MemoryMax, LimitNOFILE; docker: --memory, --ulimit nofile), or lower node.max_runs")
	}
	return d.ok(fmt.Sprintf("%s: room for %d concurrent runs", l, fit))
}

// space checks the free disk space.
func (d *doctor) space(context.Context) bool {
	dir := d.config.DataDir
	st, err := diskOf(dir)
	if err != nil {
		return d.warn("disk-unknown", "cannot determine the free space: "+reason(err), "")
	}
	switch code, text, next := spaceOf(st, dir); code {
	case "disk-full":
		return d.problem(code, text, next)
	case "disk-low":
		return d.warn(code, text, next)
	default:
		return d.ok(text)
	}
}

// spaceOf returns the code, the words and the next step for the space at a data directory.
func spaceOf(st overview.DiskStatus, dir string) (code, text, next string) {
	text, next = fmt.Sprintf("%s of %s free", size(st.Free), size(st.Total)), "free disk space at "+dir
	switch {
	case st.Free < noSpace:
		return "disk-full", text + ": claybot cannot store messages", next
	case st.Full():
		return "disk-full", text + ": claybot will soon be unable to store messages", next
	case st.NearlyFull():
		return "disk-low", text, next
	}
	return postgres.CodeOK, text, ""
}

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// knowsFull reports whether an error is that of a disk of which a finding says that it is full.
func (d *doctor) knowsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) && slices.ContainsFunc(d.all, func(f finding) bool { return f.Code == "disk-full" })
}

// writing measures how long a synced write takes.
func (d *doctor) writing(context.Context) bool {
	dir := d.config.DataDir
	f, err := os.CreateTemp(dir, ".claybot-doctor-")
	if d.knowsFull(err) {
		return true
	}
	if err != nil {
		return d.problem("data-dir-not-writable", "cannot write to "+dir+": "+reason(err), "let this user write there, and check whether the disk is full or read-only")
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
		if d.knowsFull(err) {
			return true
		}
		if err != nil {
			return d.problem("data-dir-not-writable", "cannot write to "+dir+": "+reason(err), "check whether the disk is full or defective")
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	text := fmt.Sprintf("a synced write takes %v", took[syncs/2].Round(10*time.Microsecond))
	if took[syncs/2] > slowSync {
		return d.warn("disk-slow", text+", which delays every message", "put the data directory on a faster disk")
	}
	return d.ok(text)
}

// modes checks whether other users of the machine may read private files.
func (d *doctor) modes(context.Context) bool {
	dir := d.config.DataDir
	if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o077 == 0 {
		return d.ok("only its owner can access " + dir)
	}
	open, seen, first := 0, 0, ""
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // other users cannot read it either
		}
		if seen++; seen > mostModes {
			return fs.SkipAll
		}
		info, err := entry.Info()
		if err != nil || entry.IsDir() || info.Mode().Type() == fs.ModeSymlink {
			return nil //nolint:nilerr // it was removed meanwhile
		}
		if info.Mode().Perm()&0o077 != 0 {
			if open++; first == "" {
				first = path
			}
		}
		return nil
	})
	text := "other users of this machine can list " + dir
	switch {
	case open > 0:
		text = fmt.Sprintf("other users of this machine can read %s, such as %s", count(open, "file"), first)
	case err != nil:
		text = "cannot check the modes: " + reason(err)
	}
	d.warn("files-open-to-others", text, "run: chmod 700 "+dir)
	return d.offerClosing(dir)
}

// tokens names the API tokens that may approve actions because they are older than the
// scope approve.
func (d *doctor) tokens(context.Context) bool {
	if !d.opened {
		return true
	}
	names, err := web.LegacyTokens(d.config.DataDir)
	if err != nil {
		return d.warn("record-unreadable", "cannot read the API tokens: "+reason(err), "")
	}
	for _, name := range names {
		d.warn("token-may-approve", "the API token "+name+" is older than the scope approve, so it may approve and deny actions",
			fmt.Sprintf("to narrow it, run: claybot token revoke %s && claybot token create %s --scope operate", name, name))
	}
	return true
}

// sqlite checks the database of a data directory.
func (d *doctor) sqlite(ctx context.Context) bool {
	dir := d.config.DataDir
	path, idle := filepath.Join(dir, "claybot.db"), d.holder == ""
	if _, err := os.Stat(path + sqlite.Restoring); err == nil && idle {
		d.problem("restore-interrupted", "a restore was interrupted", "run: claybot restore --data-dir "+dir)
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	s, err := sqlite.Look(ctx, path, idle)
	found := fmt.Sprintf("version %d, %s", s.Version, size(s.Size))
	switch {
	case errors.Is(err, fs.ErrNotExist) && hasAgents(dir):
		return d.problem("database-missing", "the file is missing although there are agents; the next start creates a new one from their directories and notifies users", afterDamage(dir))
	case errors.Is(err, fs.ErrNotExist):
		return d.ok("does not exist yet; the first start creates it")
	case errors.Is(err, storage.ErrDamaged):
		return d.problem("database-damaged", "the file is damaged: "+err.Error(), afterDamage(dir)) && false
	case err != nil && s.Version > s.Known:
		return d.problem("database-newer", fmt.Sprintf("its schema is version %d; this claybot supports up to %d", s.Version, s.Known), "start the newer version of claybot, or a later one; nothing was changed") && false
	case errors.Is(err, storage.ErrBusy):
		return d.warn("database-locked", "another process has locked it", "run the doctor again in a moment") && false
	case err != nil:
		return d.problem("database-unreadable", "cannot open it: "+err.Error(), "check whether this user may read it, and run the doctor as the user who runs claybot") && false
	case !s.Whole:
		return d.ok(found + "; it opens, but is too large to read completely here")
	case s.Version < s.Known:
		return d.ok(fmt.Sprintf("%s; the next start migrates it to version %d", found, s.Known))
	}
	return d.ok(found + ", undamaged")
}

// histories checks the lines of the histories, as far as the time goes.
func (d *doctor) histories(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found, err := files.LookHistories(ctx, d.config.DataDir)
	switch {
	case len(found.Unread) > 0:
		d.warn("history-unreadable", "cannot read the histories of "+listed(found.Unread), "")
	case err != nil && ctx.Err() == nil:
		return d.warn("history-unreadable", "cannot list the agents: "+reason(err), "let the user who runs claybot read the folder agents of the data directory")
	}
	if len(found.Damaged) > 0 {
		return d.warn("history-damaged", "there are damaged lines in the histories of "+listed(found.Damaged), "")
	}
	if len(found.Unread) == 0 && found.Agents > 0 {
		text := fmt.Sprintf("%s of %s read, all lines undamaged", size(found.Bytes), count(found.Agents, "agent"))
		if ctx.Err() != nil {
			text += "; there was no time for the rest"
		}
		d.ok(text)
	}
	return true
}

// copies checks the copies of the database.
func (d *doctor) copies(context.Context) bool {
	if !d.opened || d.config.Storage.Shared() {
		return true
	}
	dir := filepath.Join(d.config.DataDir, copiesDir)
	all, err := copies(dir)
	switch {
	case err != nil:
		return d.warn("copies-unreadable", "cannot list the copies: "+reason(err), "")
	case d.config.Storage.Copies == 0:
		return d.warn("copies-off", "claybot makes no copies of its database", "set storage.copies, or make backups; see docs/backup.md")
	case len(all) == 0:
		return d.ok("none yet; the daemon makes the first one an hour after its first start, then one every day at " + d.config.Storage.CheckAt)
	}
	at, err := madeAt(all[0])
	if err != nil {
		return d.warn("copies-unreadable", "cannot read "+all[0]+": "+reason(err), "")
	}
	return d.ok(fmt.Sprintf("%d in %s, the newest from %s", len(all), dir, at.UTC().Format("2006-01-02 15:04 UTC")))
}
