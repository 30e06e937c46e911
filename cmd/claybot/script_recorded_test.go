package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// A terminalAct is what a person does at a moment of a terminal, for its record.
type terminalAct struct {
	seen int // bytes of the shown text that the person had seen
	text string
}

// recordMasks replace what no two runs share, and what is too long for a page.
var recordMasks = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`(?m)(^[ ▀▄█]{20,}\n)+`), "(the link as a QR code)\n"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:11434"},
	{regexp.MustCompile(`\b[A-HJ-NP-Z2-9]{16}\b`), "K7QM4X9B3T6W8RN2"},
	{regexp.MustCompile(`manifest_yaml=\S+`), "manifest_yaml=…"},
	{regexp.MustCompile(`(?m)^! Docker cannot be used: .*\n`), ""}, // on a machine without it
	{regexp.MustCompile(`local or off \[off\]`), "local or off [docker]"},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

// recorded checks that what the terminal showed stands under a heading of a page, with the command
// and what the person did, or writes it there with -transcripts.
func (t *terminal) recorded(ts *testscript.TestScript, page, heading string) {
	text := t.shown()
	for _, act := range slices.Backward(t.acts) {
		at := act.seen
		if end := strings.IndexByte(text[at:], '\n'); end >= 0 {
			at += end + 1
		}
		text = text[:at] + "        ← " + act.text + "\n" + text[at:]
	}
	for _, m := range recordMasks {
		text = m.form.ReplaceAllString(text, m.as)
	}
	path := filepath.Join("..", "..", "docs", page+".md")
	b, err := os.ReadFile(path)
	ts.Check(err)
	before, section, found := strings.Cut(string(b), "\n## "+heading+"\n")
	intro, block, fenced := strings.Cut(section, fence+"text\n")
	_, after, ended := strings.Cut(block, "\n"+fence+"\n")
	if !found || !fenced || !ended || strings.Contains(intro, "\n## ") {
		ts.Fatalf("%s has no record under %s", path, heading)
	}
	command := "$ claybot " + strings.Join(t.cmd.Args[1:], " ") + "\n"
	same(ts, path, []byte(before+"\n## "+heading+"\n"+intro+fence+"text\n"+command+strings.TrimRight(text, "\n")+"\n"+fence+"\n"+after), "setup_shown")
}
