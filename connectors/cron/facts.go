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
	"github.com/claybot/claybot/storage"
)

const (
	factsFile  = "facts.json"
	goneFolder = folder + "/.gone"
	// keepFacts is how long the ledger alone knows what is done with. It keeps its
	// rows for much longer.
	keepFacts = 12 * time.Hour
	// keepGone is how long the facts of a task are kept whose folder is gone.
	keepGone = 30 * 24 * time.Hour
	// blink is how long a folder may be away and be taken for the same: an editor
	// or a tool has replaced it.
	blink = 10 * time.Second
)

// A fact is what must survive of a task, besides the ledger. All nodes know it: the
// one that first sees a change of TASK.md decides since when instants count.
type fact struct {
	Timing string `json:"timing"` // hash of what its instants are made of
	Since  int64  `json:"since"`  // unix seconds: no instant up to here fires
	Anchor int64  `json:"anchor"` // unix seconds: an every counts from here
	Off    bool   `json:"off,omitempty"`
	Gone   int64  `json:"gone,omitempty"` // unix seconds: its folder is not there since
	// Epoch counts how often its instants began to count anew.
	Epoch int `json:"epoch,omitempty"`

	Paused     string       `json:"paused,omitempty"`     // why it does not fire
	PausedText string       `json:"pausedText,omitempty"` // hash of the file that is paused
	Lifted     claybot.Time `json:"lifted,omitempty"`     // when a pause ended
}

// factsOf is a file with a fact.
type factsOf struct {
	UID string `json:"uid"` // of the task, which may be another one in the same folder
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

// splitFacts puts facts beside those tasks that are among the files, and all others
// into goneFolder. A mark that cannot be read makes none.
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
		var members map[string]json.RawMessage // all are kept, also unknown ones
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
	for _, p := range slices.Sorted(maps.Keys(files)) { // of several of one uid always the same counts
		body := files[p]
		var members map[string]json.RawMessage
		var uid string
		if json.Unmarshal(body, &members) != nil || json.Unmarshal(members["uid"], &uid) != nil {
			continue // what is remembered begins anew, as it would at a node
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

// loadFacts reads all facts: also of tasks whose folders are not there, or have another task.
func (c *Cron) loadFacts(ctx context.Context) error {
	all, err := c.cfg.Tree.List(ctx, goneFolder)
	if err != nil {
		return err
	}
	entries, err := c.cfg.Tree.Entries(ctx, folder)
	if err != nil {
		return err
	}
	var paths []string
	for _, f := range append(all, entries...) {
		if isFacts(f.Path) {
			paths = append(paths, f.Path)
		}
	}
	found, err := storage.ReadFiles(ctx, c.cfg.Tree, paths)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts, c.aside = make(map[string]fact), make(map[string]bool)
	for _, p := range slices.Sorted(maps.Keys(found)) { // those of goneFolder come first
		var of factsOf
		if json.Unmarshal(found[p].Body, &of) == nil && of.UID != "" && (p == gonePath(of.UID) || inTask(p, factsFile)) {
			c.facts[of.UID], c.aside[of.UID] = of.fact, c.aside[of.UID] || p == gonePath(of.UID)
		}
	}
	return nil
}

// editFacts changes facts, those of uids[i] beside the task slugs[i], and returns
// them. change may be called again when another node was faster. What change leaves
// as it was is not written.
func (c *Cron) editFacts(ctx context.Context, slugs, uids []string, change func(i int, f *fact)) ([]fact, []storage.TreeFile, error) {
	facts, paths := make([]fact, len(slugs)), make([]string, len(slugs))
	for i, slug := range slugs {
		paths[i] = factsPath(slug)
	}
	files, err := storage.EditFiles(ctx, c.cfg.Tree, paths, func(i int, old storage.TreeFile) ([]byte, error) {
		var of factsOf
		if json.Unmarshal(old.Body, &of) != nil || of.UID != uids[i] { // none, damaged, or of another task
			c.mu.Lock()
			of = factsOf{UID: uids[i], fact: c.facts[uids[i]]} // its folder has moved, or was away
			c.mu.Unlock()
			old.Version = 0
		}
		was := of.fact
		change(i, &of.fact)
		facts[i] = of.fact
		if of.fact == was && old.Version != 0 {
			return nil, nil
		}
		return json.Marshal(of)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("remember the tasks: %w", err)
	}
	return facts, files, nil
}

// mark changes what must survive of a task.
func (c *Cron) mark(ctx context.Context, slug, uid string, change func(*fact)) error {
	facts, _, err := c.editFacts(ctx, []string{slug}, []string{uid}, func(_ int, f *fact) { change(f) })
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.facts[uid] = facts[0]
	return nil
}

// lift ends the pause of a task with the next look at its file.
func (c *Cron) lift(ctx context.Context, slug, uid string) error {
	return c.mark(ctx, slug, uid, func(f *fact) {
		if f.Paused != "" {
			f.PausedText = ""
		}
	})
}

// agree brings the facts of tasks up to date with their files. The first node that
// sees a change decides since when its instants count, and the others take that
// over: else each would have instants of its own.
func (c *Cron) agree(ctx context.Context, files map[string]file, twice map[string]string) error {
	var slugs, uids []string
	for _, slug := range slices.Sorted(maps.Keys(files)) {
		if f := files[slug]; f.def != nil && !f.agreed && twice[slug] == "" {
			slugs, uids = append(slugs, slug), append(uids, f.def.uid)
		}
	}
	facts, written, err := c.editFacts(ctx, slugs, uids, func(i int, fc *fact) {
		f := files[slugs[i]]
		remember(fc, f.def, f.at, c.now())
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, slug := range slugs {
		f := files[slug]
		f.agreed, f.facts = true, written[i].Version
		files[slug], c.facts[uids[i]] = f, facts[i]
	}
	return nil
}

// remember brings a fact up to date with the file of its task, which was written at
// a time.
func remember(fc *fact, d *definition, written, now time.Time) {
	begin := now.Unix()
	if written.Before(now) && now.Sub(written) < freshness { // an instant may have passed since
		begin = written.Unix()
	}
	renewed := fc.Timing != d.timing
	back := fc.Gone != 0 && now.Sub(time.Unix(fc.Gone, 0)) > blink
	enabled := fc.Off && d.enabled
	lifted := fc.Paused != "" && fc.PausedText != d.text
	if lifted {
		fc.Paused, fc.PausedText, fc.Lifted = "", "", claybot.At(now)
	}
	if renewed || enabled || back || lifted {
		fc.Since = begin
		if !lifted || renewed || enabled {
			fc.Anchor = begin
		}
		fc.Epoch++
	}
	if renewed && !d.plan.at.IsZero() {
		fc.Since = 0 // a single instant is not lost, however late its file is seen
	}
	fc.Timing, fc.Off, fc.Gone = d.timing, !d.enabled, 0
}

// miss moves the facts of tasks that are not there to goneFolder, and forgets those
// that have been away for long. here are the uids of all tasks that are there, and
// left the folders that have facts of others.
func (c *Cron) miss(ctx context.Context, here map[string]bool, left []string) error {
	now := c.now()
	var drop []storage.TreeFile
	var paths []string
	var gone []factsOf
	c.mu.Lock()
	for uid, f := range c.facts {
		switch {
		case here[uid]:
			if c.aside[uid] {
				drop = append(drop, storage.TreeFile{Path: gonePath(uid)})
			}
		case f.Gone == 0:
			f.Gone = now.Unix()
			paths, gone = append(paths, gonePath(uid)), append(gone, factsOf{uid, f})
		case now.Sub(time.Unix(f.Gone, 0)) > keepGone:
			delete(c.facts, uid)
			drop = append(drop, storage.TreeFile{Path: gonePath(uid)})
		}
	}
	c.mu.Unlock()
	_, err := storage.EditFiles(ctx, c.cfg.Tree, paths, func(i int, _ storage.TreeFile) ([]byte, error) { return json.Marshal(gone[i]) })
	for _, slug := range left {
		drop = append(drop, storage.TreeFile{Path: factsPath(slug)})
	}
	if err == nil {
		err = storage.WriteFiles(ctx, c.cfg.Tree, drop)
	}
	if err != nil {
		return fmt.Errorf("remember the tasks that are gone: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range gone {
		c.facts[of.UID], c.aside[of.UID] = of.fact, true
	}
	for _, f := range drop {
		delete(c.aside, strings.TrimSuffix(path.Base(f.Path), ".json"))
	}
	return nil
}

// settled notes up to when instants are done with. One of the nodes does it and the
// others see it.
func (c *Cron) settled(ctx context.Context) error {
	var slugs, uids []string
	var last []int64
	now := c.now().Unix()
	late := func(last, since int64) bool { // what is often is not written by every node
		return last > since && max(last-since, now-last) > int64(keepFacts/time.Second)
	}
	c.mu.Lock()
	for uid, t := range c.tasks {
		if at := t.last.Unix(); late(at, c.facts[uid].Since) {
			slugs, uids, last = append(slugs, t.slug), append(uids, uid), append(last, at)
		}
	}
	c.mu.Unlock()
	facts, _, err := c.editFacts(ctx, slugs, uids, func(i int, f *fact) {
		if late(last[i], f.Since) {
			f.Since = last[i]
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range facts {
		c.facts[uids[i]] = facts[i]
	}
	return err
}
