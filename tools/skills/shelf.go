package skills

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/storage"
)

// treeFolder is the folder of a Tree that has the skills, each in a folder of its
// own.
const treeFolder = "skills"

// treeTime bounds a request that no caller waits for.
const treeTime = 5 * time.Second

// A Shelf is the skills that nodes share in a Tree. It remembers what it has read
// until that changes, so a prompt costs no question. It is safe for concurrent
// use.
type Shelf struct {
	tree *storage.Mirror

	mu   sync.Mutex
	read map[string]shelved // by path
}

// shelved is a file that was read.
type shelved struct {
	version int64
	sum     string
	text    []byte // of a manifest only
}

// NewShelf is the skills of a Tree, whose Mirror must be running.
func NewShelf(tree *storage.Mirror) *Shelf { return &Shelf{tree: tree, read: make(map[string]shelved)} }

func (s *Shelf) any() bool {
	ctx, cancel := context.WithTimeout(context.Background(), treeTime)
	defer cancel()
	all, err := s.tree.Entries(ctx, treeFolder)
	return err == nil && len(all) > 0
}

func (s *Shelf) all(ctx context.Context) ([]Skill, error) {
	entries, err := s.tree.Entries(ctx, treeFolder)
	if err == nil {
		err = s.fetch(ctx, entries)
	}
	if err != nil {
		return nil, fmt.Errorf("the skills cannot be read: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Skill
	for len(entries) > 0 {
		name, _, inside := strings.Cut(strings.TrimPrefix(entries[0].Path, treeFolder+"/"), "/")
		prefix, n := treeFolder+"/"+name+"/", 0
		for n < len(entries) && strings.HasPrefix(entries[n].Path, prefix) {
			n++
		}
		if !inside {
			entries = entries[1:] // a file that belongs to no skill
			continue
		}
		if len(all) == maxSkills {
			break
		}
		skill, err := s.skill(name, prefix, entries[:n])
		if err != nil {
			skill = Skill{Name: name, State: Broken, Problem: err.Error()}
		}
		all, entries = append(all, skill), entries[n:]
	}
	return all, nil
}

func (s *Shelf) skill(name, prefix string, entries []storage.TreeFile) (Skill, error) {
	if !nameForm.MatchString(name) {
		return Skill{}, errBadName
	}
	skill := Skill{Name: name, Files: make(map[string]string)}
	total := 0
	for _, e := range entries {
		if total += e.Size; total > maxSkill || len(skill.Files) == maxFiles {
			return Skill{}, errTooLarge
		}
		f, ok := s.read[e.Path]
		if !ok {
			return Skill{}, errors.New("it was changed just now; look again")
		}
		rel := strings.TrimPrefix(e.Path, prefix)
		skill.Files[rel] = f.sum
		if rel == manifest {
			if err := skill.manifest(f.text); err != nil {
				return Skill{}, err
			}
		}
	}
	return skill.whole()
}

// fetch reads what has changed, and forgets what is gone.
func (s *Shelf) fetch(ctx context.Context, entries []storage.TreeFile) error {
	here := make(map[string]bool, len(entries))
	var want []string
	s.mu.Lock()
	for _, e := range entries {
		here[e.Path] = true
		if s.read[e.Path].version != e.Version {
			want = append(want, e.Path)
		}
	}
	for path := range s.read {
		if !here[path] {
			delete(s.read, path)
		}
	}
	s.mu.Unlock()
	for _, path := range want { // one by one: they may be long
		found, err := s.tree.Read(ctx, path)
		if err != nil {
			return err
		}
		s.mu.Lock()
		delete(s.read, path)
		for _, f := range found {
			x := shelved{version: f.Version, sum: sum(f.Body)}
			if strings.HasSuffix(path, "/"+manifest) {
				x.text = f.Body
			}
			s.read[path] = x
		}
		s.mu.Unlock()
	}
	return nil
}

func (s *Shelf) file(ctx context.Context, skill, rel string) ([]byte, error) {
	found, err := s.tree.Read(ctx, treeFolder+"/"+skill+"/"+rel)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the skills cannot be read now: %w", err)
	case len(found) == 0:
		return nil, fmt.Errorf("%s is gone", rel)
	}
	return found[0].Body, nil
}
