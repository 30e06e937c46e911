package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

var transcripts = flag.Bool("transcripts", false, "write the transcripts and pictures of scripts to docs")

// looksLike is the section of a page with a transcript and its picture.
const looksLike = "\n## What it looks like\n"

// fence is around a transcript, which has code of its own.
const fence = "````"

// A turn is a step of a scene as its transcript shows it: a message of the bot, or what a person
// wrote or did.
type turn struct {
	place, who, text string
	said, bot        bool // a person wrote it, or the bot
}

var (
	turnForm = regexp.MustCompile(`^ *\d+\.\d\ds  (\w+) (.*?) ?(>|< bot|\|) +(.*)$`)
	saidForm = regexp.MustCompile(`^(Ann|Bob): `)
	// dayTime and dateTime are the parts of a transcript that no two plays share.
	dayTime  = regexp.MustCompile(`\b(today|yesterday|tomorrow) at \d{1,2}:\d\d UTC`)
	dateTime = regexp.MustCompile(`\bon \w+day, \d{1,2} \w+( \d{4})? at \d{1,2}:\d\d UTC`)
)

// readTranscript reads what a scene printed for a page, but for what it says about itself.
func readTranscript(page, out string) (all []turn) {
	for line := range strings.Lines(out) {
		line = dayTime.ReplaceAllString(strings.TrimRight(line, "\n"), "$1 at 12:00 UTC")
		line = dateTime.ReplaceAllString(line, "on Friday, 2 January at 12:00 UTC")
		m := turnForm.FindStringSubmatch(line)
		switch {
		case m != nil:
			t := turn{place: m[2], text: m[4], bot: m[3] == "< bot"}
			if _, one := looks[page]; !one { // of several platforms
				t.place = strings.TrimSpace(m[1] + " " + m[2])
			} else if t.place == "" {
				t.place = "direct"
			}
			if t.bot {
				t.who = "claybot"
			} else if who := saidForm.FindString(t.text); who != "" {
				t.who, t.text, t.said = strings.TrimSuffix(who, ": "), strings.TrimPrefix(t.text, who), true
			}
			all = append(all, t)
		case strings.HasPrefix(line, strings.Repeat(" ", 12)) && len(all) > 0:
			all[len(all)-1].text += "\n" + strings.TrimPrefix(line, strings.Repeat(" ", 34))
		}
	}
	return all
}

// buttons divides the text of a message and what stands on the buttons below it.
func (t turn) buttons() (text string, labels []string) {
	i := strings.LastIndex(t.text, "\n [")
	if i < 0 {
		return t.text, nil
	}
	return t.text[:i], strings.Split(strings.Trim(t.text[i+2:], "[]"), "] [")
}

// String is the turn as the page shows it.
func (t turn) String() string {
	who := t.place + " · "
	if t.who != "" {
		who += t.who + ": "
	}
	return who + strings.ReplaceAll(strings.ReplaceAll(t.text, "\n", "\n    "), "\n    \n", "\n\n")
}

// transcript checks that the transcript and the picture on a page are those of the scene that was
// played last: transcript PAGE, for docs/PAGE.md and, on the page of one platform,
// docs/images/PAGE.svg. With -transcripts, it writes them.
func transcript(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: transcript PAGE")
	}
	all := readTranscript(args[0], ts.ReadFile("stdout"))
	var lines strings.Builder
	for _, t := range all {
		fmt.Fprintln(&lines, t)
	}
	path := filepath.Join("..", "..", "docs", args[0]+".md")
	page, err := os.ReadFile(path)
	ts.Check(err)
	before, section, found := strings.Cut(string(page), looksLike)
	intro, block, fenced := strings.Cut(section, fence+"text\n")
	_, after, ended := strings.Cut(block, "\n"+fence+"\n")
	if !found || !fenced || !ended {
		ts.Fatalf("%s has no transcript", path)
	}
	const scenes = "demo_(platforms|groups)"
	same(ts, path, []byte(before+looksLike+intro+fence+"text\n"+lines.String()+fence+"\n"+after), scenes)
	if _, one := looks[args[0]]; one {
		same(ts, filepath.Join("..", "..", "docs", "images", args[0]+".svg"), []byte(draw(args[0], all)), scenes)
	}
}

// same checks the content of a file that scripts show, or writes it.
func same(ts *testscript.TestScript, path string, want []byte, scripts string) {
	if *transcripts {
		ts.Check(os.WriteFile(path, want, 0o600))
		return
	}
	have, err := os.ReadFile(path)
	ts.Check(err)
	if bytes.Equal(have, want) {
		return
	}
	old, lines := strings.Split(string(have), "\n"), strings.Split(string(want), "\n")
	for i, line := range lines {
		if i >= len(old) || line != old[i] {
			ts.Fatalf("%s is not what the script shows, first in line %d:\n%s\nRun: go test ./cmd/claybot -run 'TestScript/%s' -transcripts", path, i+1, line, scripts)
		}
	}
	ts.Fatalf("%s has more lines than the script shows; run: go test ./cmd/claybot -run 'TestScript/%s' -transcripts", path, scripts)
}
