package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// writeBytes writes what a script cannot hold: bytes FILE COUNT TEXT [COUNT
// TEXT]..., with Go's escapes in TEXT.
func writeBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args)%2 == 0 {
		ts.Fatalf("usage: bytes FILE COUNT TEXT [COUNT TEXT]...")
	}
	var all strings.Builder
	for i := 1; i < len(args); i += 2 {
		count, err := strconv.Atoi(args[i])
		ts.Check(err)
		text, err := strconv.Unquote(`"` + args[i+1] + `"`)
		ts.Check(err)
		all.WriteString(strings.Repeat(text, count))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all.String()), 0o600))
}

// one is the only file that a pattern matches.
func one(ts *testscript.TestScript, pattern string) string {
	names, err := filepath.Glob(ts.MkAbs(pattern))
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("%s matches %d files, want one: %v", pattern, len(names), names)
	}
	return names[0]
}

// damageFile changes a file: damage replace|append PATTERN TEXT, or
// damage flip PATTERN OFFSET, which flips a bit.
func damageFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 || args[0] != "replace" && args[0] != "append" && args[0] != "flip" {
		ts.Fatalf("usage: damage replace|append PATTERN TEXT, damage flip PATTERN OFFSET")
	}
	name, text := one(ts, args[1]), args[2]
	switch args[0] {
	case "append":
		text = ts.ReadFile(name) + text
	case "flip":
		at, err := strconv.Atoi(text)
		ts.Check(err)
		b := []byte(ts.ReadFile(name))
		b[at] ^= 4
		text = string(b)
	}
	ts.Check(os.WriteFile(name, []byte(text), 0o600))
}

// insertMember adds a member to an object in a file: insert PATTERN MEMBER.
func insertMember(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: insert PATTERN MEMBER")
	}
	name := one(ts, args[0])
	text := strings.Replace(ts.ReadFile(name), "{", "{"+args[1]+",", 1)
	if !json.Valid([]byte(text)) {
		ts.Fatalf("no object: %s", text)
	}
	ts.Check(os.WriteFile(name, []byte(text), 0o600))
}

// showFile makes a file the standard output: show PATTERN.
func showFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: show PATTERN")
	}
	_, err := ts.Stdout().Write([]byte(ts.ReadFile(one(ts, args[0]))))
	ts.Check(err)
}

// private checks that only the owner can reach anything in a directory:
// private DIR.
func private(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: private DIR")
	}
	files := 0
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	}))
	if files < 5 {
		ts.Fatalf("only %d files: that is not a data directory", files)
	}
}

// capture sets a variable to what a group matches in the standard output:
// capture VARIABLE REGEXP.
func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture VARIABLE REGEXP")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	m := re.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(m) != 2 {
		ts.Fatalf("no match for %s", args[1])
	}
	ts.Setenv(args[0], m[1])
}

// fields checks that an object has exactly the named members, those in
// brackets optionally: fields FILE PATH NAME... PATH is a list of names joined
// by dots, or a single dot; a list of objects is checked in every element.
func fields(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: fields FILE PATH NAME...")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
	for name := range strings.FieldsFuncSeq(args[1], func(r rune) bool { return r == '.' }) {
		object, ok := v.(map[string]any)
		if !ok || object[name] == nil {
			ts.Fatalf("there is no %s", args[1])
		}
		v = object[name]
	}
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	if len(all) == 0 {
		ts.Fatalf("%s is empty", args[1])
	}
	for _, v := range all {
		object, ok := v.(map[string]any)
		if !ok {
			ts.Fatalf("%s is not an object: %v", args[1], v)
		}
		for _, name := range args[2:] {
			optional := strings.HasPrefix(name, "[")
			name = strings.Trim(name, "[]")
			if _, ok := object[name]; !ok && !optional {
				ts.Fatalf("%s lacks %s: %v", args[1], name, object)
			}
			delete(object, name)
		}
		if len(object) > 0 {
			ts.Fatalf("%s has more than was promised: %v", args[1], slices.Sorted(maps.Keys(object)))
		}
	}
}

// documented writes the last block of commands in a section of a page of docs/ into a
// file: documented PAGE HEADING FILE.
func documented(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: documented PAGE HEADING FILE")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", args[0]))
	ts.Check(err)
	_, section, found := strings.Cut(string(page), "# "+args[1]+"\n")
	if !found {
		ts.Fatalf("%s has no section %q", args[0], args[1])
	}
	section, _, _ = strings.Cut(section, "\n#")
	blocks := strings.Split(section, "```\n")
	if len(blocks) < 3 {
		ts.Fatalf("section %q of %s has no commands", args[1], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(blocks[len(blocks)-2]), 0o600))
}

// telegramFile sends a file of a script, with a caption.
func (r *rig) telegramFile(ts *testscript.TestScript, who, file, caption string) {
	doc := r.telegram.AddFile(file, []byte(ts.ReadFile(file)))
	doc["file_name"] = file
	in := telegramtest.Incoming{Fields: map[string]any{"document": doc, "caption": caption}}
	in.ChatID, in.UserID = person(ts, who)
	r.last, _ = r.telegram.Write(in)
}

// reads checks the names of the documents in the newest request.
func (r *rig) reads(ts *testscript.TestScript, want []string) {
	all := r.model.Requests()
	var got []string
	for _, m := range all[len(all)-1].Messages {
		for _, d := range m.Documents {
			got = append(got, d.Name)
		}
	}
	if !slices.Equal(got, want) {
		ts.Fatalf("the newest request has the documents %q", got)
	}
}

// makeDatabase makes an SQLite database that another program has left: database FILE SQLFILE.
func makeDatabase(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: database FILE SQLFILE")
	}
	ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[0])), 0o700))
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	_, err = db.ExecContext(context.Background(), ts.ReadFile(args[1]))
	ts.Check(errors.Join(err, db.Close()))
}
