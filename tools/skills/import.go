package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// Read lists the skills of a folder in the order of their names, without what was allowed of them. What
// is wrong with one says so in its place; a folder that is not there has none.
func Read(dir string) ([]Skill, error) { return readAll(dir) }

// ErrTaken: there is a skill of this name with other content.
var ErrTaken = errors.New("there is another skill of this name")

// Import copies a skill from a folder into another one, which it creates. It is there as a whole, or not
// at all, also after a crash. A skill with the same content stays as it is, and copied is false; one with
// other content is ErrTaken. What is allowed of skills stays: a new one is off until it is allowed.
func Import(from, to string, s Skill) (copied bool, err error) {
	if s.State == Broken || s.Hash == "" {
		return false, errors.New(s.Problem)
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		return false, err
	}
	defer source.Close()
	if err := os.MkdirAll(to, 0o700); err != nil {
		return false, err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return false, err
	}
	defer root.Close()
	if _, err := root.Lstat(s.Name); err == nil {
		if there, err := readSkill(root, s.Name); err != nil || there.Hash != s.Hash {
			return false, ErrTaken
		}
		return false, nil
	}
	draft := ".import-" + s.Name // of which a crash may have left a part
	if err := root.RemoveAll(draft); err != nil {
		return false, err
	}
	for name := range s.Files {
		if err := copyFile(source, root, path.Join(s.Name, name), path.Join(draft, name)); err != nil {
			return false, errors.Join(err, root.RemoveAll(draft))
		}
	}
	return true, root.Rename(draft, s.Name)
}

// copyFile copies a file of a skill, for its owner alone.
func copyFile(source, root *os.Root, from, to string) error {
	content, err := readRegular(source, from, path.Base(from))
	if err != nil {
		return err
	}
	if err := root.MkdirAll(path.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(0o600))
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("%s cannot be written: %w", to, err)
	}
	return nil
}

// Matches reports whether a folder has a skill of this name, and whether it has the same content.
func Matches(dir string, s Skill) (there, same bool) {
	all, err := readAll(dir)
	if err != nil {
		return false, false
	}
	for _, x := range all {
		if x.Name == s.Name {
			return true, x.Hash == s.Hash
		}
	}
	return false, false
}
