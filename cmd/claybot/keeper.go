package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/texts"
)

const (
	checkRate = 32 << 20 // bytes a second that checks and copies read
	saveEnds  = time.Minute
	// overdueWait is how long after the start an overdue copy is made.
	overdueWait = time.Minute
	// spareSpace is what a copy leaves free on the disk.
	spareSpace = 256 << 20
	copiesDir  = "copies"
	copyPrefix = "claybot-"
	copyTime   = "20060102T150405Z"

	// firstCopy is how long after the first start of a store its first copy is made.
	firstCopy = time.Hour
	// lookPlace is how often claybot checks that its files are still in place.
	lookPlace = 5 * time.Second

	markChecks    = "checks" // their results, as JSON
	checkRestored = "restored"
	markRestored  = "restored" // when the copy was made that the database was restored from
	// markWithdrawn is what of its approvals was withdrawn, as a sentence.
	markWithdrawn = "restored_withdrawn"
)

// A keeper checks a data directory after the start and every day, and keeps verified copies
// of its database. In a cluster it is nil, on which its methods may be called.
type keeper struct {
	config *settings
	log    *slog.Logger
	system func() *agentsystem.AgentSystem
	db     *sqlite.DB
	agents *files.Store
	boots  *files.Boots // nil until begin
	broken chan error   // the database turned out to be damaged

	copying sync.Mutex // one copy at a time
	marking sync.Mutex // held by mark
	marked  int64      // the commits that the newest mark is behind; run's own

	mu   sync.Mutex
	last map[string]overview.CheckStatus
}

// results returns the results of the newest checks, by name.
func (k *keeper) results() map[string]overview.CheckStatus {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.last)
}

// run works until ctx is done, or until the database turns out to be damaged: then its
// error wraps storage.ErrDamaged and names the next command.
func (k *keeper) run(ctx context.Context) error {
	if k == nil {
		return nil
	}
	k.load(ctx)
	k.notifyRestored(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	_, checked := k.results()["database"] // else this is the first start
	work.Go(func() { k.check(ctx) })
	wait := overdueWait
	if !checked {
		wait = firstCopy
	}
	overdue := time.NewTimer(wait)
	defer overdue.Stop()
	look := time.NewTicker(lookPlace)
	defer look.Stop()
	save := time.NewTicker(saveEnds)
	defer save.Stop()
	nightly := time.NewTimer(k.untilNight(time.Now()))
	defer nightly.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-k.broken:
			return damagedError(k.config.Load().DataDir, err)
		case <-look.C:
			_ = k.db.CheckPlace(ctx) // it reports to k.broken
		case <-save.C:
			if err := k.agents.SaveEnds(ctx); err != nil {
				k.log.Warn("failed to record history lengths", "err", err)
			}
			if err := k.agents.SaveTotals(ctx); err != nil {
				k.log.Warn("failed to write usage totals to agent files", "err", err)
			}
			k.markCommits(ctx)
		case <-overdue.C: // for a machine that is off at night
			if last := k.results()["copy"]; time.Since(last.At.Time()) > 24*time.Hour {
				work.Go(func() { k.copy(ctx) })
			}
		case now := <-nightly.C:
			nightly.Reset(k.untilNight(now))
			work.Go(func() {
				k.check(ctx)
				k.copy(ctx)
			})
		}
	}
}

// untilNight is the time until the next nightly check.
func (k *keeper) untilNight(now time.Time) time.Duration {
	c := k.config.Load()
	at, _ := time.Parse("15:04", c.Storage.CheckAt) // the configuration has checked it
	zone := cmp.Or(c.Schedule.Cron.Zone, time.Local)
	now = now.In(zone)
	next := time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, zone)
	if !next.After(now) {
		next = time.Date(now.Year(), now.Month(), now.Day()+1, at.Hour(), at.Minute(), 0, 0, zone)
	}
	return next.Sub(now)
}

// check reads the database and the histories completely.
func (k *keeper) check(ctx context.Context) {
	bytes, err := k.db.Check(ctx, checkRate)
	if ctx.Err() != nil {
		return
	}
	k.say(ctx, "database", size(bytes)+" read, all pages undamaged", err)
	found, err := k.agents.Check(ctx, checkRate)
	if ctx.Err() != nil {
		return
	}
	text := fmt.Sprintf("%s of %s read", size(found.Bytes), count(found.Agents, "agent"))
	if found.Rebuilt > 0 {
		text += fmt.Sprintf(", %s of the index rebuilt", count(found.Rebuilt, "row"))
	}
	if err == nil && len(found.Damaged)+len(found.Shorter)+len(found.Unread) > 0 {
		code := "history-damaged"
		if len(found.Damaged)+len(found.Shorter) == 0 {
			code = "history-unreadable"
		}
		err = checkFault{code, fmt.Errorf("%s; unreadable lines: %s; truncated: %s; not read: %s", text, listed(found.Damaged), listed(found.Shorter), listed(found.Unread))}
	}
	k.say(ctx, "histories", text+", all lines undamaged", err)
}

// A checkFault is what a check found, with the code of the doctor.
type checkFault struct {
	code string
	error
}

// faultCode is the code of the doctor for what a check found; empty: the doctor does not look.
func faultCode(err error) string {
	if f, ok := errors.AsType[checkFault](err); ok {
		return f.code
	}
	if errors.Is(err, storage.ErrDamaged) {
		return "database-damaged"
	}
	return ""
}

// listed names a few items.
func listed[T any](ids []T) string {
	const most = 10
	if len(ids) == 0 {
		return "none"
	}
	var names []string
	for _, id := range ids[:min(most, len(ids))] {
		names = append(names, fmt.Sprint(id))
	}
	if len(ids) > most {
		names = append(names, fmt.Sprintf("and %d more", len(ids)-most))
	}
	return strings.Join(names, ", ")
}

// copy makes a verified copy of the database and removes the oldest ones. It makes none if
// disk space is short.
func (k *keeper) copy(ctx context.Context) {
	if !k.copying.TryLock() {
		return
	}
	defer k.copying.Unlock()
	c := k.config.Load()
	if c.Storage.Copies == 0 {
		return
	}
	dir := filepath.Join(c.DataDir, copiesDir)
	to := filepath.Join(dir, copyPrefix+time.Now().UTC().Format(copyTime)+".db")
	err := k.roomForCopy(c.DataDir)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = removeUnfinished(dir)
	}
	if err == nil {
		// The marks around it make every copy older than the boot record, so that a start
		// recognizes a copy that was put in place by hand.
		k.mark(ctx, true)
		err = k.db.Backup(ctx, to, checkRate)
		k.mark(ctx, true)
	}
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		err = pruneCopies(dir, c.Storage.Copies)
	}
	k.say(ctx, "copy", "created and verified "+to, err)
}

// roomForCopy refuses a copy that would leave too little space.
func (k *keeper) roomForCopy(dir string) error {
	info, err := os.Stat(filepath.Join(dir, "claybot.db"))
	if err != nil {
		return err
	}
	disk, err := diskOf(dir)
	if err != nil {
		return err
	}
	if disk.Free-info.Size() < spareSpace {
		return fmt.Errorf("no copy made: %s free, and a copy takes %s; free disk space at %s", size(disk.Free), size(info.Size()), dir)
	}
	return nil
}

// copies returns the paths of the verified copies in dir, the newest first.
func copies(dir string) ([]string, error) {
	all, err := filepath.Glob(filepath.Join(dir, copyPrefix+"*.db"))
	slices.Sort(all) // by time
	slices.Reverse(all)
	return all, err
}

// removeUnfinished removes unfinished copies.
func removeUnfinished(dir string) error {
	all, err := filepath.Glob(filepath.Join(dir, copyPrefix+"*.db.new"))
	for _, name := range all {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

func pruneCopies(dir string, keep int) error {
	all, err := copies(dir)
	for _, old := range all[min(keep, len(all)):] {
		err = errors.Join(err, os.Remove(old))
	}
	return err
}

// say stores and logs the result of a check.
func (k *keeper) say(ctx context.Context, what, text string, err error) {
	s := overview.CheckStatus{At: claybot.Now(), Text: text}
	if err != nil {
		s.Text, s.Problem, s.Code = err.Error(), true, faultCode(err)
		k.log.Error("data directory check failed", "check", what, "err", err)
	} else {
		k.log.Debug("data directory checked", "check", what, "result", text)
	}
	k.mu.Lock()
	if k.last == nil {
		k.last = make(map[string]overview.CheckStatus)
	}
	k.last[what] = s
	b, merr := json.Marshal(k.last)
	k.mu.Unlock()
	if merr == nil {
		merr = k.db.SetCheckpoint(ctx, markChecks, string(b))
	}
	if merr != nil && ctx.Err() == nil {
		k.log.Warn("failed to store check result", "check", what, "err", merr)
	}
}

// load reads the results that the last process stored.
func (k *keeper) load(ctx context.Context) {
	text, err := k.db.Checkpoint(ctx, markChecks)
	if err != nil || text == "" {
		return // the next check has new ones
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = json.Unmarshal([]byte(text), &k.last) // as above
	delete(k.last, checkRestored)             // status showed it until the restart
}

// notifyRestored notifies users once that the database went back to an earlier state: the
// operators, users whose conversations continued after that state, and users whose newest
// message was ended for it. If the state is unknown, it notifies everyone.
func (k *keeper) notifyRestored(ctx context.Context) {
	text, err := k.db.Checkpoint(ctx, markRestored)
	if err != nil || text == "" {
		return
	}
	made, _ := time.Parse(copyTime, text) // zero: unknown
	v := texts.Voice{}
	approvals, err := k.db.Checkpoint(ctx, markWithdrawn)
	if err != nil {
		return
	}
	k.say(ctx, checkRestored, "", errors.New("claybot.db was "+v.DatabaseState(made)+"; its unfinished work has ended, and claybot notifies the affected users"))
	err = k.system().People.NotifyOperators(ctx, "restored/"+text, func(v texts.Voice) string {
		return v.RestoredOperators(made) + " " + cmp.Or(approvals, withdrawn{}.String())
	})
	err = errors.Join(err, k.notifyUsers(ctx, made, func(v texts.Voice) string { return v.Restored(made) }))
	if err == nil {
		err = errors.Join(k.db.SetCheckpoint(ctx, markWithdrawn, ""), k.db.SetCheckpoint(ctx, markRestored, ""))
	}
	if err != nil && ctx.Err() == nil {
		k.log.Warn("failed to notify users of the database rollback; the next start retries", "err", err)
	}
}

// notifyUsers notifies the users who are affected by a database that is back at its state of
// made. If one cannot be notified, it continues with the others.
func (k *keeper) notifyUsers(ctx context.Context, made time.Time, say func(texts.Voice) string) error {
	ended, err := k.db.RestoredAgents(ctx)
	errs := []error{err}
	for e, err := range k.db.IndexedAgents(ctx) {
		if err != nil {
			errs = append(errs, err)
			break
		}
		dir := filepath.Join(k.config.Load().DataDir, "agents", string(e.ID))
		changed := made.IsZero() || slices.Contains(ended, e.ID)
		for _, name := range []string{dir, filepath.Join(dir, "history.jsonl")} {
			info, err := os.Stat(name)
			changed = changed || err == nil && info.ModTime().After(made)
		}
		if changed && e.Descriptor.Foreground() {
			errs = append(errs, k.system().Tell(ctx, e.ID, say))
		}
	}
	return errors.Join(errs...)
}

// damagedError adds the next command to the error of a damaged database.
func damagedError(dir string, err error) error {
	if errors.Is(err, sqlite.ErrMoved) {
		return fmt.Errorf("%w; put it back into %s and start claybot, or run: claybot restore --data-dir %s; "+
			"otherwise the next start creates a new one from the directories of the agents and notifies users", err, dir, dir)
	}
	return fmt.Errorf("%w; claybot leaves the database unchanged: %s", err, afterDamage(dir))
}

// afterDamage is the next step after damage to a database.
func afterDamage(dir string) string {
	if all, err := copies(filepath.Join(dir, copiesDir)); err == nil && len(all) > 0 {
		return "keep a copy of the whole data directory before anything else, then run: claybot restore --data-dir " + dir
	}
	return "keep a copy of the whole data directory before anything else; then put a backup of the directory in its place, " +
		"or run claybot restore --data-dir " + dir + " with a backup of claybot.db"
}

// checkGone refuses an empty database of a directory with agents.
func checkGone(dir, path string) error {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 && hasAgents(dir) {
		return fmt.Errorf("open %s: %w: the file is empty although there are agents", path, storage.ErrDamaged)
	}
	return nil
}
