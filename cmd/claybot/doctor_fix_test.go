package main

import (
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
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

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// withLock makes a data directory that claybot has used, with a mode.
func withLock(mode fs.FileMode) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		b.write(t, "data/claybot.lock", "")
		modeOfData(mode)(t, b)
	}
}

// claybot doctor --fix mends what is safe to mend, says what it did, and does nothing the second time. What
// a person must decide stays, with its next step.
func TestDoctorFixes(t *testing.T) {
	for _, x := range []struct {
		brokenSetup
		did string // empty: nothing
	}{
		{brokenSetup{name: "a directory that others may write to", breaks: withLock(0o777), code: "data-dir-open-to-others"}, "to 0700; it was 0777"},
		{brokenSetup{name: "a directory that others may read", breaks: withLock(0o755), code: "files-open-to-others"}, "to 0700; it was 0755"},
		{brokenSetup{name: "a directory of all, with a sticky bit", breaks: withLock(0o777 | fs.ModeSticky), code: "data-dir-open-to-others"}, "to 1700; it was 1777"},
		{brokenSetup{name: "a directory of a group", breaks: withLock(0o750 | fs.ModeSetgid), code: "files-open-to-others"}, "to 2700; it was 2750"},
		{brokenSetup{name: "a directory without a file of claybot", breaks: modeOfData(0o777), code: "data-dir-open-to-others"}, ""},
		{brokenSetup{name: "a directory with a link in place of the lock", breaks: func(t *testing.T, b *setupBench) {
			modeOfData(0o755)(t, b)
			b.write(t, "elsewhere", "")
			link(t, "../elsewhere", filepath.Join(b.data, "claybot.db"))
		}, code: "files-open-to-others"}, ""},
		{brokenSetup{name: "a mistyped key", file: "# kept\nlog_levle: debug # and this\n", code: "config-key-unknown"}, "claybot.yaml:2: renamed log_levle to log_level"},
		{brokenSetup{name: "a mistyped key in a group", file: "agents: {default: {debouncMs: 100}}\n", code: "config-key-unknown"}, "renamed agents.default.debouncMs to agents.default.debounceMs"},
		{brokenSetup{name: "a webhook of another program", flags: online, breaks: withTelegram(func(s *telegramtest.Server) {
			s.SetWebhook("https://other.example/FAKE-secret")
		}), code: "telegram-webhook-set"}, ""},
		{brokenSetup{name: "a key that is set already", file: "log_levle: debug\nlog_level: warn\n", code: "config-key-unknown"}, ""},
		{brokenSetup{name: "a key that says who may write", file: "acces: open\n", code: "config-key-unknown"}, ""},
		{brokenSetup{name: "a key that says who decides", file: "operator: [telegram/1]\n", code: "config-key-unknown"}, ""},
		{brokenSetup{name: "a file that a link leads to", file: "log_levle: debug\n", breaks: func(t *testing.T, b *setupBench) {
			b.write(t, "real/claybot.yaml", "log_levle: debug\n")
			if err := os.Remove(b.path); err != nil {
				t.Fatal(err)
			}
			link(t, "real/claybot.yaml", b.path)
		}, code: "config-key-unknown"}, ""},
		{brokenSetup{name: "a file in a folder that a link leads to", breaks: func(t *testing.T, b *setupBench) {
			b.write(t, "real/claybot.yaml", "log_levle: debug\n")
			link(t, "real", filepath.Join(b.dir, "led"))
			b.path = filepath.Join(b.dir, "led", "claybot.yaml")
		}, code: "config-key-unknown"}, ""},
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
}

// A rename by the doctor can be undone, and the rest of the file is as it was.
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

// Only a directory that is claybot's is closed, also when another one has its place since the doctor looked.
func TestClosingOthers(t *testing.T) {
	b := newSetupBench(t, brokenSetup{breaks: withLock(0o755)})
	do := closing(b.data)
	b.write(t, "other/claybot.lock", "")
	other := filepath.Join(b.dir, "other")
	if err := os.Chmod(other, 0o755); err != nil { //nolint:gosec // that is what is broken
		t.Fatal(err)
	}
	if err := os.Rename(b.data, b.data+"2"); err != nil {
		t.Fatal(err)
	}
	link(t, "other", b.data)
	for _, dir := range []string{b.data, b.data + "/"} {
		text, err := closing(dir)(t.Context())
		if err == nil {
			t.Errorf("%s: %s", dir, text)
		}
	}
	if text, err := do(t.Context()); err == nil {
		t.Error(text)
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		return // only root has files of others
	}
	own := b.data + "2"
	for _, x := range []struct {
		dir, lock int
		closes    bool
	}{{1234, 1234, true}, {1234, 0, false}, {0, 1234, false}, {0, 0, true}} {
		if err := os.Chmod(own, 0o755); err != nil { //nolint:gosec // that is what is broken
			t.Fatal(err)
		}
		if err := os.Lchown(own, x.dir, -1); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(filepath.Join(own, "claybot.lock"), x.lock, -1); err != nil {
			t.Fatal(err)
		}
		if text, err := closing(own)(t.Context()); (err == nil) != x.closes {
			t.Errorf("a directory of %d with a lock of %d: %s, %v", x.dir, x.lock, text, err)
		}
	}
}

// A configuration file of another user is not renamed in.
func TestFixOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		return // only root has files of others
	}
	for _, name := range []string{"claybot.yaml", "."} {
		b := newSetupBench(t, brokenSetup{file: "log_levle: debug\n"})
		if err := os.Lchown(filepath.Join(b.dir, name), 1234, -1); err != nil {
			t.Fatal(err)
		}
		if done := b.fix(t); len(done) > 0 {
			t.Errorf("%s of another user: %+v", name, done)
		}
	}
}

// A change that a daemon does not take is made all the same, and the doctor says both.
func TestDoctorFixIsNotTaken(t *testing.T) {
	b := newSetupBench(t, brokenSetup{file: "log_levle: debug\n"})
	b.write(t, "data/claybot.lock", "")
	l, err := net.Listen("unix", filepath.Join(b.data, "claybot.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:gosec // of this test
		w.WriteHeader(http.StatusInternalServerError)
	})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	done := b.fix(t)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-served
	if len(done) != 1 || !strings.Contains(done[0].Text, "renamed log_levle to log_level; ") || !strings.Contains(done[0].Text, "the daemon has not read it") {
		t.Errorf("did %+v", done)
	}
	if text, err := os.ReadFile(b.path); err != nil || string(text) != "log_level: debug\n" {
		t.Errorf("%s, %v", text, err)
	}
}
