package skills_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/claybot/claybot/tools/skills"
)

// A skill of another program is copied as a whole and once, and replaces no other one.
func TestImport(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "skills")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What other programs write into groups of their own, however deep, is no mistake.
	write(filepath.Join(from, "tea", "SKILL.md"), "---\nname: tea\ndescription: Making tea.\nmetadata: {\"openclaw\": {\"requires\": {\"bins\": [\"kettle\"]}}, \"a b\": 1}\n---\nBoil water.\n")
	write(filepath.Join(from, "tea", "scripts", "boil.sh"), "true\n")
	write(filepath.Join(from, "Bad_Name", "SKILL.md"), "---\nname: x\ndescription: y\n---\n")
	write(filepath.Join(to, ".import-tea", "SKILL.md"), "half") // of a crash
	all, err := skills.Read(from)
	if err != nil || len(all) != 2 || all[0].State != skills.Broken || all[1].Name != "tea" || all[1].Problem != "" {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, want := range []bool{true, false} {
		if copied, err := skills.Import(from, to, all[1]); err != nil || copied != want {
			t.Errorf("import %d: %v, %v", i, copied, err)
		}
	}
	if there, same := skills.Matches(to, all[1]); !there || !same {
		t.Errorf("there %v, same %v", there, same)
	}
	if _, err := os.Stat(filepath.Join(to, ".import-tea")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the draft is still there", err)
	}
	write(filepath.Join(to, "tea", "scripts", "boil.sh"), "false\n")
	if _, err := skills.Import(from, to, all[1]); !errors.Is(err, skills.ErrTaken) {
		t.Error(err)
	}
	if _, err := skills.Import(from, to, all[0]); err == nil {
		t.Error("a broken skill was imported")
	}
}
