package main

import (
	"slices"
	"strings"
	"testing"
)

// TestComplete completes command lines; the last word is completed.
func TestComplete(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{"chat", []string{"chat"}},
		{"st", []string{"stop", "status"}},
		{"help tok", []string{"token"}},
		{"egress", nil},
		{"runs ca", []string{"cancel"}},
		{"runs cancel ", nil},
		{"runs --st", []string{"--state"}},
		{"runs list --st", []string{"--state"}},
		{"runs --state F", []string{"FAILED"}},
		{"runs --state=F", []string{"--state=FAILED"}},
		{"runs --json ca", []string{"cancel"}},
		{"--log js", []string{"json"}},
		{"--log=js", []string{"--log=json"}},
		{"--data-dir x runs ca", []string{"cancel"}},
		{"--data-dir=x runs ca", []string{"cancel"}},
		{"-c ", []string{":files"}},
		{"status -c x", []string{":files"}},
		{"status --config=x", []string{":files"}},
		{"status --da", []string{"--data-dir"}},
		{"export ", []string{":dirs"}},
		{"export x ", nil},
		{"token create x --scope ap", []string{"approve"}},
		{"completion ", []string{"bash", "zsh", "fish"}},
		{"--help", []string{"--help"}},
		{"nonsense ", nil},
		{"--nonsense=", nil},
		{"service sta", []string{"start", "status"}},
		{"service --us", []string{"--user"}},
	} {
		var out, errs strings.Builder
		code := run(append([]string{"complete"}, strings.Split(c.line, " ")...), strings.NewReader(""), &out, &errs)
		var got []string
		for line := range strings.Lines(out.String()) {
			word, _, _ := strings.Cut(line, "\t")
			got = append(got, word)
		}
		if code != exitOK || errs.Len() > 0 || !slices.Equal(got, c.want) {
			t.Errorf("%q: %d %q %s, want %q", c.line, code, got, &errs, c.want)
		}
	}
}

// TestManual holds that the manual page describes every command and every flag, and that no
// help text reads as a request of the format.
func TestManual(t *testing.T) {
	var out strings.Builder
	if code := run([]string{"man"}, strings.NewReader(""), &out, &out); code != exitOK {
		t.Fatalf("man ends with %d: %s", code, &out)
	}
	for _, leaf := range parserOf(t).Model.Leaves(true) {
		if !strings.Contains(out.String(), "\n.B claybot "+roff(leaf.Summary())+"\n"+roff(leaf.Help)+"\n") {
			t.Errorf("the manual lacks %s", leaf.Path())
		}
		for _, f := range leaf.Flags {
			if !strings.Contains(out.String(), roff(f.Summary())+"\n"+roff(f.Help)+"\n") {
				t.Errorf("the manual lacks --%s of %s", f.Name, leaf.Path())
			}
		}
	}
	requests := []string{".TH", ".SH", ".SS", ".TP", ".B", ".I", ".RS", ".RE", ".PP", ".nf", ".fi"}
	for line := range strings.Lines(out.String()) {
		if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); (line[0] == '.' || line[0] == '\'') && !slices.Contains(requests, word) {
			t.Errorf("unexpected request: %s", line)
		}
	}
	if got, want := roff(`.a 'b' "c" \d -e`), `\&.a \(aqb\(aq \(dqc\(dq \ed \-e`; got != want {
		t.Errorf("roff: %s, want %s", got, want)
	}
}
