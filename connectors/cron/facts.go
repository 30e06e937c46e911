package cron

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/schedule"
	"github.com/claybot/claybot/storage"
)

const (
	factsFile  = "facts.json"
	goneFolder = folder + "/.gone"
	// keepFacts is how long only the ledger records which instants are settled. It
	// keeps its rows for much longer.
	keepFacts = 12 * time.Hour
	// keepGone is how long facts are kept after the folder of their task is
	// gone.
	keepGone = 30 * 24 * time.Hour
	// blink is how long a folder may be missing and still count as the same,
	// because editors replace files.
	blink = 10 * time.Second
)

// A fact is the durable state of a task besides the ledger. All members share it: the
// one that first sees a change of TASK.md decides from when instants count.
type fact struct {
	Timing string `json:"timing"` // hash of the settings that determine its instants
	Since  int64  `json:"since"`  // unix seconds: no instant up to here fires
	Anchor int64  `json:"anchor"` // unix seconds: an every counts from here
	Off    bool   `json:"off,omitempty"`
	Gone   int64  `json:"gone,omitempty"` // unix seconds: when its folder disappeared
	// Epoch counts how often Since was reset.
	Epoch int `json:"epoch,omitempty"`

	Paused     string       `json:"paused,omitempty"`     // why it does not fire
	PausedText string       `json:"pausedText,omitempty"` // hash of the file that is paused
	Lifted     claybot.Time `json:"lifted,omitempty"`     // when a pause ended
}

// factsOf is a file with a fact.
type factsOf struct {
	UID string `json:"uid"` // of the task, which may differ from the folder's current task
	fact
}

func factsPath(slug string) string { return path.Join(folder, slug, factsFile) }
func gonePath(uid string) string   { return path.Join(goneFolder, uid+".json") }

func isFacts(p string) bool {
	return path.Dir(p) == goneFolder && strings.HasSuffix(p, ".json") || inTask(p, factsFile)
}

func idOfFacts(body []byte) string {
	var of struct{ UID string }
	if json.Unmarshal(body, &of) != nil {
		return ""
	}
	return of.UID
}

// inTask reports whether p is that file of a task's folder.
func inTask(p, file string) bool {
	dir, name := path.Split(p)
	dir = path.Clean(dir)
	return name == file && path.Dir(dir) == folder && !strings.HasPrefix(path.Base(dir), ".")
}

// splitFacts places facts next to the tasks among the files, and all others into
// goneFolder. An unreadable checkpoint yields none.
func splitFacts(mark string, files map[string][]byte) map[string][]byte {
	var facts map[string]json.RawMessage
	if json.Unmarshal([]byte(mark), &facts) != nil {
		return nil
	}
	slugs := make(map[string]string) // by uid
	for p, body := range files {
		if inTask(p, taskFile) {
			d, _, _ := readDefinition(string(body), time.UTC) // of a task with a mistake the uid is enough
			if slug := path.Base(path.Dir(p)); d.uid != "" && (slugs[d.uid] == "" || slug < slugs[d.uid]) {
				slugs[d.uid] = slug
			}
		}
	}
	split := make(map[string][]byte)
	for uid, fact := range facts {
		var members map[string]json.RawMessage // unknown members are kept
		if json.Unmarshal(fact, &members) != nil || members == nil || claybot.AgentID(uid).Validate() != nil {
			continue
		}
		members["uid"] = json.RawMessage(`"` + uid + `"`)
		body, err := json.Marshal(members)
		if err != nil {
			continue
		}
		if slug, ok := slugs[uid]; ok {
			split[factsPath(slug)] = body
		} else {
			split[gonePath(uid)] = body
		}
	}
	return split
}

func joinFacts(files map[string][]byte) string {
	facts := make(map[string]map[string]json.RawMessage)
	for _, p := range slices.Sorted(maps.Keys(files)) { // deterministic if several tasks have one uid
		body := files[p]
		var members map[string]json.RawMessage
		var uid string
		if json.Unmarshal(body, &members) != nil || json.Unmarshal(members["uid"], &uid) != nil {
			continue // damaged facts are reset, as on other members
		}
		if _, known := facts[uid]; known && path.Dir(p) == goneFolder {
			continue
		}
		delete(members, "uid")
		facts[uid] = members
	}
	b, err := json.Marshal(facts)
	if err != nil {
		return "{}" // it was read as JSON right here
	}
	return string(b)
}

// facts are the durable state of all tasks. The lock of the scheduler guards the maps.
type facts struct {
	tree  *storage.Mirror
	sched *schedule.Scheduler
	known map[string]fact // by uid
	aside map[string]bool // uids whose facts are in goneFolder
}

// load reads all facts, including those of tasks whose folder is gone or has another
// task.
func (k *facts) load(ctx context.Context) error {
	all, err := k.tree.List(ctx, goneFolder)
	if err != nil {
		return err
	}
	entries, err := k.tree.Entries(ctx, folder)
	if err != nil {
		return err
	}
	var paths []string
	for _, f := range append(all, entries...) {
		if isFacts(f.Path) {
			paths = append(paths, f.Path)
		}
	}
	found, err := storage.ReadFiles(ctx, k.tree, paths)
	if err != nil {
		return err
	}
	k.sched.Mu.Lock()
	defer k.sched.Mu.Unlock()
	k.known, k.aside = make(map[string]fact), make(map[string]bool)
	for _, p := range slices.Sorted(maps.Keys(found)) { // those of goneFolder come first
		var of factsOf
		if json.Unmarshal(found[p].Body, &of) == nil && of.UID != "" && (p == gonePath(of.UID) || inTask(p, factsFile)) {
			k.known[of.UID], k.aside[of.UID] = of.fact, k.aside[of.UID] || p == gonePath(of.UID)
		}
	}
	return nil
}

// edit changes facts, those of uids[i] beside the task slugs[i]. change is called
// again after a conflicting write. Unchanged facts are not written.
func (k *facts) edit(ctx context.Context, slugs, uids []string, change func(i int, f *fact)) ([]storage.TreeFile, error) {
	changed, paths := make([]fact, len(slugs)), make([]string, len(slugs))
	for i, slug := range slugs {
		paths[i] = factsPath(slug)
	}
	files, err := storage.EditFiles(ctx, k.tree, paths, func(i int, old storage.TreeFile) ([]byte, error) {
		var of factsOf
		if json.Unmarshal(old.Body, &of) != nil || of.UID != uids[i] { // none, damaged, or of another task
			k.sched.Mu.Lock()
			of = factsOf{UID: uids[i], fact: k.known[uids[i]]} // its folder was moved or was missing
			k.sched.Mu.Unlock()
			old.Version = 0
		}
		was := of.fact
		change(i, &of.fact)
		changed[i] = of.fact
		if of.fact == was && old.Version != 0 {
			return nil, nil
		}
		return json.Marshal(of)
	})
	if err != nil {
		return nil, fmt.Errorf("remember the tasks: %w", err)
	}
	k.sched.Mu.Lock()
	defer k.sched.Mu.Unlock()
	for i, uid := range uids {
		k.known[uid] = changed[i]
	}
	return files, nil
}

// mark changes the fact of a task.
func (k *facts) mark(ctx context.Context, slug, uid string, change func(*fact)) error {
	_, err := k.edit(ctx, []string{slug}, []string{uid}, func(_ int, f *fact) { change(f) })
	return err
}

// agree updates the facts of tasks from their files. The first member that sees a
// change decides from when instants count, and the others adopt that: otherwise
// their instants would differ.
func (k *facts) agree(ctx context.Context, files map[string]file, twice map[string]string) error {
	var slugs, uids []string
	for _, slug := range slices.Sorted(maps.Keys(files)) {
		if f := files[slug]; f.def != nil && !f.agreed && twice[slug] == "" {
			slugs, uids = append(slugs, slug), append(uids, f.def.uid)
		}
	}
	written, err := k.edit(ctx, slugs, uids, func(i int, fc *fact) {
		f := files[slugs[i]]
		fc.update(f.def, f.at, k.sched.Now())
	})
	if err != nil {
		return err
	}
	for i, slug := range slugs {
		f := files[slug]
		f.agreed, f.facts = true, written[i].Version
		files[slug] = f
	}
	return nil
}

// update brings a fact up to date with the file of its task, which was written at a
// time.
func (f *fact) update(d *definition, written, now time.Time) {
	begin := now.Unix()
	if written.Before(now) && now.Sub(written) < freshness { // an instant may have passed since
		begin = written.Unix()
	}
	renewed := f.Timing != d.timing
	back := f.Gone != 0 && now.Sub(time.Unix(f.Gone, 0)) > blink
	enabled := f.Off && d.enabled
	lifted := f.Paused != "" && f.PausedText != d.text
	if lifted {
		f.Paused, f.PausedText, f.Lifted = "", "", claybot.At(now)
	}
	if renewed || enabled || back || lifted {
		f.Since = begin
		if !lifted || renewed || enabled {
			f.Anchor = begin
		}
		f.Epoch++
	}
	if (renewed || lifted) && !d.plan.at.IsZero() {
		f.Since = 0 // a single instant is never lost, and the ledger says whether it ran
	}
	f.Timing, f.Off, f.Gone = d.timing, !d.enabled, 0
}

// miss moves the facts of missing tasks to goneFolder, and removes those that have
// been missing for long. here are the uids of all existing tasks, and left the
// folders with facts of other tasks.
func (k *facts) miss(ctx context.Context, here map[string]bool, left []string) error {
	now := k.sched.Now()
	var drop []storage.TreeFile
	var paths []string
	var gone []factsOf
	k.sched.Mu.Lock()
	for uid, f := range k.known {
		switch {
		case here[uid]:
			if k.aside[uid] {
				drop = append(drop, storage.TreeFile{Path: gonePath(uid)})
			}
		case f.Gone == 0:
			f.Gone = now.Unix()
			paths, gone = append(paths, gonePath(uid)), append(gone, factsOf{uid, f})
		case now.Sub(time.Unix(f.Gone, 0)) > keepGone:
			delete(k.known, uid)
			drop = append(drop, storage.TreeFile{Path: gonePath(uid)})
		}
	}
	k.sched.Mu.Unlock()
	_, err := storage.EditFiles(ctx, k.tree, paths, func(i int, _ storage.TreeFile) ([]byte, error) { return json.Marshal(gone[i]) })
	for _, slug := range left {
		drop = append(drop, storage.TreeFile{Path: factsPath(slug)})
	}
	if err == nil {
		err = storage.WriteFiles(ctx, k.tree, drop)
	}
	if err != nil {
		return fmt.Errorf("remember the tasks that are gone: %w", err)
	}
	k.sched.Mu.Lock()
	defer k.sched.Mu.Unlock()
	for _, of := range gone {
		k.known[of.UID], k.aside[of.UID] = of.fact, true
	}
	for _, f := range drop {
		delete(k.aside, strings.TrimSuffix(path.Base(f.Path), ".json"))
	}
	return nil
}

// settled records, by the uid of tasks, up to when instants are settled. One member
// writes it and the others read it.
func (k *facts) settled(ctx context.Context, tasks map[string]*task) error {
	var slugs, uids []string
	var last []int64
	now := k.sched.Now().Unix()
	late := func(last, since int64) bool { // avoids frequent writes by every member
		return last > since && max(last-since, now-last) > int64(keepFacts/time.Second)
	}
	k.sched.Mu.Lock()
	for uid, t := range tasks {
		if at := t.last.Unix(); late(at, k.known[uid].Since) {
			slugs, uids, last = append(slugs, t.slug), append(uids, uid), append(last, at)
		}
	}
	k.sched.Mu.Unlock()
	_, err := k.edit(ctx, slugs, uids, func(i int, f *fact) {
		if late(last[i], f.Since) {
			f.Since = last[i]
		}
	})
	return err
}
