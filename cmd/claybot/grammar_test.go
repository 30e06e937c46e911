package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestServeGrammar compares the grammar of serve with that of all commands, which is used
// when a flag comes first.
func TestServeGrammar(t *testing.T) {
	for _, last := range []string{"--help", "--bogus", "surplus", "--http="} {
		var own, all strings.Builder
		code := run([]string{"serve", "--log=text", last}, strings.NewReader(""), &own, &own)
		if want := run([]string{"--log=text", "serve", last}, strings.NewReader(""), &all, &all); code != want || own.String() != all.String() {
			t.Errorf("serve %s: %d, %d otherwise\n%s\n%s", last, code, want, &own, &all)
		}
	}
}

// parserOf returns a parser of all commands.
func parserOf(t *testing.T) *kong.Kong {
	t.Helper()
	p, err := newParser(new(cli), io.Discard, io.Discard, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGroups holds that the help lists every command below a heading, with its own line, and
// no command twice.
func TestGroups(t *testing.T) {
	var help strings.Builder
	if code := run([]string{"--help"}, strings.NewReader(""), &help, &help); code != exitOK {
		t.Fatalf("--help ends with %d", code)
	}
	for _, c := range parserOf(t).Model.Children {
		lines := regexp.MustCompile(`(?m)^  `+c.Name+` {2,}\S`).FindAllString(help.String(), -1)
		switch {
		case c.Group == nil || !strings.HasSuffix(c.Group.Title, ":"):
			t.Errorf("%s is in no group", c.Name)
		case c.Hidden && len(lines) != 0, !c.Hidden && len(lines) != 1:
			t.Errorf("the help has %d lines of %s", len(lines), c.Name)
		}
	}
}

// TestExamples holds that the help of every command shows an example of it, and that every
// example is a command line that claybot takes.
func TestExamples(t *testing.T) {
	p := parserOf(t)
	words := regexp.MustCompile(`'[^']*'|\S+`)
	check := func(leaf *kong.Node, line string) {
		var args []string
		for _, word := range words.FindAllString(line, -1)[1:] {
			if word == "<" || word == ">" {
				break // a file of the shell
			}
			args = append(args, strings.ReplaceAll(strings.Trim(word, "'"), "AGENT", "cjld2cjxh0000qzrmn831i7rn"))
		}
		ctx, err := parserOf(t).Parse(args) // a new one: it keeps what it parsed
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if got := ctx.Selected().Path(); leaf != nil && got != leaf.Path() {
			t.Errorf("%s: is an example of %s, and runs %s", line, leaf.Path(), got)
		}
	}
	for _, line := range examplesOf(firstHour) {
		check(nil, line)
	}
	for _, leaf := range p.Model.Leaves(true) {
		examples := examplesOf(leaf.Tag.Get("eg"))
		if len(examples) == 0 {
			t.Errorf("claybot %s has no example", leaf.Path())
		}
		for _, line := range examples {
			check(leaf, line)
		}
		var help strings.Builder
		p.Stdout = &help
		_, _ = p.Parse(append(strings.Fields(leaf.Path()), "--help")) // it goes on after the help and misses arguments
		if _, after, _ := strings.Cut(help.String(), "\nExamples:\n"); !slices.Equal(strings.Split(strings.TrimSpace(after), "\n  "), examples) {
			t.Errorf("the help of %s ends with %q, want %q", leaf.Path(), after, examples)
		}
	}
}

// TestMistakes holds that a mistyped command or flag is answered with the nearest name and
// the help that has it.
func TestMistakes(t *testing.T) {
	for args, want := range map[string]string{
		"agnets":                  "claybot: unexpected argument agnets, did you mean \"agents\"?\nTry: claybot --help\n",
		"runs cancle":             "claybot: unexpected argument cancle, did you mean \"cancel\"?\nTry: claybot runs --help\n",
		"runs xyzzy":              "claybot: unexpected argument xyzzy\nTry: claybot runs --help\n",
		"config undo":             "claybot: unexpected argument undo, did you mean \"revert\"?\nTry: claybot config --help\n",
		"config revret":           "claybot: unexpected argument revret, did you mean \"revert\"?\nTry: claybot config --help\n",
		"runs --sate FAILED":      "claybot: unknown flag --sate, did you mean \"--state\"?\nTry: claybot runs --help\n",
		"token create x --scop=y": "claybot: unknown flag --scop, did you mean \"--scope\"?\nTry: claybot token create --help\n",
		"serve --htttp=off":       "claybot: unknown flag --htttp, did you mean \"--http\"?\nTry: claybot serve --help\n",
		"--dta-dir=x status":      "claybot: unknown flag --dta-dir, did you mean \"--data-dir\"?\nTry: claybot --help\n",
		"token create":            "claybot: expected \"<name>\"\nTry: claybot token create --help\n",
	} {
		var out strings.Builder
		if code := run(strings.Fields(args), strings.NewReader(""), &out, &out); code != exitUsage || out.String() != want {
			t.Errorf("%s: %d %q, want %q", args, code, &out, want)
		}
	}
}

// TestNegatives holds that the negative value of a key is a value, and all else is what it was.
func TestNegatives(t *testing.T) {
	for args, want := range map[string]string{
		"config set limits.x -5":               "config set limits.x -- -5",
		"-c f config set limits.x -.5 --log=x": "-c f config set limits.x --log=x -- -.5",
		"config set --config f limits.x -100":  "config set --config f limits.x -- -100",
		"config set limits.x -- -5":            "config set limits.x -- -5",
		"config set -5":                        "config set -5",
		"config set limits.x -c f":             "config set limits.x -c f",
		"config get limits.x -5":               "config get limits.x -5",
	} {
		if got := strings.Join(negatives(strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// The README names every command that --help shows.
func TestReadmeNamesCommands(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Command line\n")
	for _, c := range parserOf(t).Model.Children {
		if re := regexp.MustCompile("`(claybot )?" + c.Name + "[` ]"); !c.Hidden && !re.MatchString(table) {
			t.Errorf("the table of commands lacks claybot %s", c.Name)
		}
	}
}
