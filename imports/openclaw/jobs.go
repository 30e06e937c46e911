package openclaw

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot/imports"
)

const (
	jobFile = "cron/jobs.json"
	// jobDatabase is where OpenClaw keeps tasks since 2026.6.1; a file of before stays where it was.
	jobDatabase = "state/openclaw.sqlite"
	// maxDatabase bounds what is copied of the database, which holds more than tasks.
	maxDatabase = 1 << 30
)

// jobs reads the scheduled tasks.
func (r *reader) jobs() {
	path := filepath.Join(r.dir.Path, jobFile)
	if store := r.config.At("cron", "store").Text(); store != "" {
		path = filepath.Clean(r.env.Expand(store))
	}
	if r.config.At("cron", "enabled").Is(false) {
		r.Leave("tasks", "they are switched off there")
		return
	}
	if r.dir.Has(jobDatabase) {
		stored, is, err := r.stored(path)
		switch {
		case err != nil:
			r.Leave("tasks", "they are in a database, "+jobDatabase+", but: "+err.Error()+"; list them with openclaw cron list, and create them with claybot cron add")
			return
		case is:
			for _, t := range stored {
				r.add(t.job, t.off)
			}
			return
		}
	}
	name, inside := strings.CutPrefix(path, r.dir.Path+"/")
	if !inside {
		r.Leave("tasks", "their file is outside of the directory")
		return
	}
	if !r.dir.Has(name) {
		return
	}
	jobs, err := r.dir.Jobs(name)
	if err != nil {
		r.Leave("tasks", err.Error())
		return
	}
	for _, v := range jobs {
		r.add(v, v.At("enabled").Is(false))
	}
}

// A stored is a task of the database, which may be switched off.
type stored struct {
	job imports.Value
	off bool
}

// stored reads the tasks of the database; is reports whether it has a table of tasks, and so all that there are.
// They belong to the path that their file had before there was a database; in a directory that was moved, it is
// another one.
func (r *reader) stored(path string) (all []stored, is bool, err error) {
	folder, err := os.MkdirTemp("", "claybot-import-")
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // nothing depends on it
	file := filepath.Join(folder, "openclaw.sqlite")
	if err := r.copyDatabase(file); err != nil {
		return nil, false, err
	}
	if tables, err := r.env.Query(file, "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'cron_jobs'"); err != nil || len(tables) == 0 {
		return nil, false, err
	}
	rows, err := r.env.Query(file, "SELECT store_key, job_json, enabled FROM cron_jobs ORDER BY sort_order, updated_at, job_id")
	if err != nil {
		return nil, false, err
	}
	keys := make(map[string]bool)
	for _, row := range rows {
		keys[row[0]] = true
	}
	if len(keys) > 1 && !keys[path] {
		return nil, false, fmt.Errorf("it has the tasks of %d files, and none is %s", len(keys), path)
	}
	for _, row := range rows {
		if len(keys) > 1 && row[0] != path {
			continue
		}
		v, err := imports.ParseJSON5([]byte(row[1]))
		if err != nil || !v.Object() {
			return nil, false, errors.New("a task there is not JSON")
		}
		all = append(all, stored{v, row[2] == "0"})
	}
	return all, true, nil
}

// copyDatabase copies the database with its log.
func (r *reader) copyDatabase(to string) error {
	if r.dir.Has(jobDatabase + "-journal") {
		return errors.New("OpenClaw has not finished a change of it; start and stop OpenClaw, and import again")
	}
	before := r.dir.Stamp(jobDatabase, jobDatabase+"-wal")
	for _, end := range []string{"", "-wal"} {
		if r.dir.Has(jobDatabase + end) {
			if err := r.dir.Copy(jobDatabase+end, to+end, maxDatabase); err != nil {
				return err
			}
		}
	}
	if r.dir.Stamp(jobDatabase, jobDatabase+"-wal") != before {
		return errors.New("OpenClaw writes to it; stop OpenClaw and import again")
	}
	return nil
}

// add adds a task.
func (r *reader) add(v imports.Value, off bool) {
	if v.At("delivery", "mode").Text() == "webhook" {
		r.Leave("task "+v.At("name").Text(), "it posts its result to an address; see docs/relay.md")
		return
	}
	j := r.job(v)
	j.Off = off
	r.AddJob(j, r.env)
}

func (r *reader) job(v imports.Value) imports.Job {
	when, payload, delivery := v.At("schedule"), v.At("payload"), v.At("delivery")
	j := imports.Job{
		ID: v.First("id", "jobId").Text(), Name: v.At("name").Text(), Text: strings.TrimSpace(payload.First("message", "text").Long()),
		Kind: when.At("kind").Text(), Expr: when.At("expr").Text(), Zone: when.At("tz").Text(), Every: when.At("everyMs").Number(),
		Channel: delivery.At("channel").Text(), To: delivery.At("to").Text(),
	}
	j.At = moment(when)
	j.Once = j.Kind == "at" && !v.At("deleteAfterRun").Is(false)
	if !delivery.There() { // of old versions
		j.Channel, j.To, j.Silent = payload.At("channel").Text(), payload.At("to").Text(), payload.At("deliver").Is(false)
	}
	j.Silent = j.Silent || delivery.At("mode").Text() == "none"
	if j.Channel == "" || j.Channel == "last" {
		j.To = ""
	}
	return j
}

// moment is the one time of a schedule; one without a zone is in UTC.
func moment(when imports.Value) time.Time {
	if ms := when.At("atMs").Number(); ms > 0 && ms < 1<<53 {
		return time.UnixMilli(int64(ms)).UTC()
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, time.DateOnly} {
		if t, err := time.Parse(form, when.At("at").Text()); err == nil {
			return t
		}
	}
	return time.Time{}
}
