package skills

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/lazyregexp"
)

// Limits of a skill.
const (
	maxSkills      = 200
	maxFiles       = 200
	maxFile        = 1 << 20 // bytes
	maxSkill       = 8 << 20
	maxDescription = 1024
	maxHint        = 100 // characters of a hint of arguments
	manifest       = "SKILL.md"
)

var (
	errBadName  = errors.New("the name of its folder must be of a-z, 0-9 and -, at most 64 of them")
	errTooLarge = fmt.Errorf("it has more than %d files or %d MiB", maxFiles, maxSkill>>20)
)

var nameForm = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)

// readAll reads the folders of a library. What is wrong with one says so in its
// place; a library that is not there is empty.
func readAll(dir string) ([]Skill, error) {
	if dir == "" {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the folder of skills cannot be opened: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("the folder of skills cannot be read: %w", err)
	}
	var all []Skill
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(all) == maxSkills {
			return all, nil
		}
		s, err := readSkill(root, e.Name())
		if err != nil {
			s = Skill{Name: strings.ToValidUTF8(e.Name(), "?"), State: Broken, Problem: err.Error()}
		}
		all = append(all, s)
	}
	return all, nil
}

func readSkill(root *os.Root, name string) (Skill, error) {
	if !nameForm.MatchString(name) {
		return Skill{}, errBadName
	}
	s := Skill{Name: name, Files: make(map[string]string)}
	total := int64(0)
	err := fs.WalkDir(root.FS(), name, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%s cannot be read", path.Base(p))
		}
		if e.IsDir() {
			return nil
		}
		rel := strings.TrimPrefix(p, name+"/")
		content, err := readRegular(root, p, rel)
		if err != nil {
			return err
		}
		if total += int64(len(content)); total > maxSkill || len(s.Files) == maxFiles {
			return errTooLarge
		}
		s.Files[rel] = sum(content)
		if rel == manifest {
			return s.manifest(content)
		}
		return nil
	})
	if err != nil {
		return Skill{}, err
	}
	return s.whole()
}

func (s Skill) whole() (Skill, error) {
	if s.Description == "" {
		return Skill{}, fmt.Errorf("it has no %s", manifest)
	}
	s.Hash = hashOf(s.Files)
	return s, nil
}

func readRegular(root *os.Root, p, rel string) ([]byte, error) {
	info, err := root.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", rel)
	}
	f, err := root.OpenFile(p, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be opened", rel)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return nil, fmt.Errorf("%s was exchanged while it was read", rel)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read", rel)
	case len(content) > maxFile:
		return nil, fmt.Errorf("%s has more than %d MiB", rel, maxFile>>20)
	}
	return content, nil
}

func sum(content []byte) string {
	b := sha256.Sum256(content)
	return hex.EncodeToString(b[:])
}

func hashOf(files map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%d:%s%s", len(name), name, files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// manifest reads SKILL.md: front matter and text. Fields that other programs know
// are ignored.
func (s *Skill) manifest(content []byte) error {
	if !utf8.Valid(content) {
		return fmt.Errorf("%s is not UTF-8", manifest)
	}
	front, err := configs.ReadManifest(string(content))
	if err != nil {
		return fmt.Errorf("%s: %w", manifest, err)
	}
	name, _ := front.Get("name")
	about, _ := front.Get("description")
	description := strings.Join(strings.Fields(about.Value), " ")
	switch {
	case name.Value != "" && name.Value != s.Name:
		return fmt.Errorf("its name is %.64q and that of its folder is %q; they must be equal", name.Value, s.Name)
	case description == "":
		return fmt.Errorf("%s has no description", manifest)
	case len(description) > maxDescription:
		return fmt.Errorf("its description has more than %d bytes", maxDescription)
	}
	for _, f := range front.Fields {
		if strings.HasPrefix(f.Key, "allowed-tools.") {
			return errors.New("allowed-tools must be a list of names")
		}
	}
	s.Description, s.text = description, front.Body
	if err := s.command(front); err != nil {
		return err
	}
	if allowed, ok := front.Get("allowed-tools"); ok {
		s.Tools, err = toolNames(allowed.Value)
	}
	return err
}

// command reads whether people use the skill by its name as a chat command: unless the manifest
// says no, and the name can be none. A manifest that says yes must have a name that can.
func (s *Skill) command(front configs.Frontmatter) error {
	invocable, _ := front.Get("user-invocable")
	switch invocable.Value {
	case "false":
		return nil
	case "", "true":
	default:
		return fmt.Errorf("user-invocable must be true or false, not %.32q", invocable.Value)
	}
	ok, own := connectors.CommandForm(s.Name)
	switch {
	case ok:
		hint, _ := front.Get("argument-hint")
		s.Command, s.Arguments = s.Name, connectors.OneLine(hint.Value, maxHint)
	case invocable.Value == "":
	case own:
		return fmt.Errorf("/%s is a command of claybot: rename the skill and its folder, or set user-invocable: false", s.Name)
	default:
		return fmt.Errorf("a command begins with a letter and has at most 32 characters: rename the skill and its folder, or set user-invocable: false")
	}
	return nil
}

// toolNames reads a list of tools. What stands in parentheses behind a name, as
// other programs write it, narrows the tool in ways that only they know; such a
// name is refused rather than widened.
func toolNames(list string) ([]string, error) {
	names := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	for _, name := range names {
		if !toolForm.MatchString(name) {
			return nil, fmt.Errorf("allowed-tools: invalid tool name %.64q", name)
		}
	}
	if names == nil {
		names = []string{} // it says that it needs none
	}
	return names, nil
}

var toolForm = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)
