package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// fix returns what claybot doctor --fix did, as it says.
func (b *setupBench) fix(t *testing.T, flags ...string) []mended {
	t.Helper()
	out, errs := b.command(append([]string{"doctor", "--fix", "--json"}, flags...)...)
	var said struct{ Fixed []mended }
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	return said.Fixed
}

// claybot doctor --fix mends what is safe to mend, says what it did, and does nothing the second time. What
// a person must decide stays, with its next step.
func TestDoctorFixes(t *testing.T) {
	var telegram *telegramtest.Server
	for _, x := range []struct {
		brokenSetup
		did string // empty: nothing
	}{
		{brokenSetup{name: "a directory that others may write to", breaks: modeOfData(0o777), code: "data-dir-open-to-others"}, "to 0700; it was 0777"},
		{brokenSetup{name: "a directory that others may read", breaks: modeOfData(0o755), code: "files-open-to-others"}, "to 0700; it was 0755"},
		{brokenSetup{name: "a mistyped key", file: "# kept\nlog_levle: debug # and this\n", code: "config-key-unknown"}, "claybot.yaml:2: renamed log_levle to log_level"},
		{brokenSetup{name: "a mistyped key in a group", file: "agents: {default: {debouncMs: 100}}\n", code: "config-key-unknown"}, "renamed agents.default.debouncMs to agents.default.debounceMs"},
		{brokenSetup{name: "a webhook of another program", flags: online, breaks: withTelegram(func(s *telegramtest.Server) {
			telegram = s
			s.SetWebhook("https://other.example/FAKE-secret")
		}), code: "telegram-webhook-set"}, "removed the webhook that led to other.example"},
		{brokenSetup{name: "a key that is set already", file: "log_levle: debug\nlog_level: warn\n", code: "config-key-unknown"}, ""},
		{brokenSetup{name: "a key that says who may write", file: "acces: open\n", code: "config-key-unknown"}, ""},
		{brokenSetup{name: "a connector", file: "telegarm: {}\n", code: "config-key-unknown"}, ""},
		{brokenSetup{name: "a damaged database", breaks: inData(map[string]string{"claybot.db": strings.Repeat("x", 4096)}), code: "database-damaged"}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newSetupBench(t, x.brokenSetup)
			before := treeOf(t, b.dir)
			done := b.fix(t, x.flags...)
			did := len(done) == 1 && done[0].Code == x.code && strings.Contains(done[0].Text, x.did) && !strings.Contains(done[0].Text, "FAKE")
			if x.did == "" && len(done) > 0 || x.did != "" && !did {
				t.Errorf("did %+v, want %q", done, x.did)
			}
			found := false
			for _, f := range b.doctor(t, x.flags...) {
				found = found || f.Code == x.code
			}
			if found != (x.did == "") {
				t.Errorf("afterwards the doctor finds %s: %v", x.code, found)
			}
			after := treeOf(t, b.dir)
			if x.did == "" && !slices.Equal(before, after) {
				t.Errorf("changed %q to %q", before, after)
			}
			if again := b.fix(t, x.flags...); len(again) > 0 || !slices.Equal(after, treeOf(t, b.dir)) {
				t.Errorf("the second time, it did %+v", again)
			}
		})
	}
	if n := len(telegram.Journal("deleteWebhook")); n != 1 {
		t.Errorf("%d calls of deleteWebhook", n)
	}
}

// A key that the doctor renamed can be taken back, and the rest of the file is as it was.
func TestDoctorFixIsRevertible(t *testing.T) {
	b := newSetupBench(t, brokenSetup{file: "# kept\nlog_levle: debug # and this\n"})
	b.fix(t)
	text, err := os.ReadFile(b.path)
	if err != nil || string(text) != "# kept\nlog_level: debug # and this\n" {
		t.Fatalf("%v: %s", err, text)
	}
	if out, errs := b.command("config", "revert"); !strings.Contains(out, "log_level: not set, was debug") {
		t.Errorf("%s%s", out, errs)
	}
	if out, _ := b.command("config", "get", "log_level"); strings.TrimSpace(out) != "info" {
		t.Errorf("the level is %s", out)
	}
}
