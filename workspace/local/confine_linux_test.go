package local

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/workspace"
)

// confinedTo is a provider in a data directory as claybot has one, with one confinement.
func confinedTo(t *testing.T, c confinement) (p *Provider, data string) {
	t.Helper()
	if got := probe(); c == byUser && got != byUser || c == byLandlock && landlockVersion() < 3 {
		if os.Getenv("CI") == "true" && c == byLandlock {
			t.Fatalf("with CI=true all tests run, and this machine confines %q", got)
		}
		t.Skipf("this machine confines %q", got)
	}
	data = filepath.Join(t.TempDir(), "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "web.token"), []byte("fake-token-4711"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = New(Config{Dir: filepath.Join(data, "workspaces")})
	p.best = func() confinement { return c }
	return p, data
}

func opened(t *testing.T, p *Provider, key workspace.Key, change ...func(*workspace.Spec)) *view {
	t.Helper()
	spec := open
	for _, c := range change {
		c(&spec)
	}
	w, err := p.Open(t.Context(), key, spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Remove(context.WithoutCancel(t.Context()), key, true); err != nil {
			t.Error(err)
		}
	})
	return w.(*view)
}

func run(t *testing.T, w workspace.Workspace, line string) string {
	t.Helper()
	r, err := w.Exec(t.Context(), workspace.Command{Shell: line, Wall: 5 * time.Minute})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return r.Output
}

// TestConnects is what a command runs: it connects to a socket, and says how that went.
func TestConnects(t *testing.T) {
	at := os.Getenv("CLAYBOT_TEST_SOCKET")
	if at == "" {
		t.Skip("this is for TestConfined")
	}
	c, err := net.Dial("unix", at)
	if err == nil {
		c.Close()
		fmt.Println("CONNECTED")
	}
	t.Log(err)
}

// TestConfined has commands that do their work in their workspace, and get at nothing of
// claybot's or of its user's.
func TestConfined(t *testing.T) {
	for _, c := range []confinement{byUser, byLandlock} {
		t.Run(string(c), func(t *testing.T) {
			p, data := confinedTo(t, c)
			l, err := net.Listen("unix", filepath.Join(data, "s"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			outside := t.TempDir()
			if err := os.WriteFile(filepath.Join(outside, "mine"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			w, other := opened(t, p, "agent/a"), opened(t, p, "agent/b")
			if err := other.WriteFile(t.Context(), "secret", []byte("x")); err != nil {
				t.Fatal(err)
			}
			works(t, w)
			program, err := os.ReadFile(os.Args[0])
			if err == nil {
				err = w.WriteFile(t.Context(), "connects", program)
			}
			if err != nil {
				t.Fatal(err)
			}
			run(t, w, "chmod 700 connects")
			pid := strconv.Itoa(os.Getpid())
			tries := map[string]string{
				"read the owner's token":       "cat " + data + "/web.token",
				"list the data directory":      "ls " + data + " | grep -v -e workspaces | grep . ",
				"change the data directory":    "echo x > " + data + "/x",
				"list the workspaces":          "ls " + filepath.Dir(other.base) + "/ | grep " + filepath.Base(other.base),
				"read another workspace":       "cat " + other.dir() + "/secret",
				"read its own record":          "cat " + w.base + "/" + recordName,
				"read a file of the user":      "cat " + outside + "/mine",
				"write a file of the user":     "echo y > " + outside + "/mine",
				"remove a file of the user":    "rm " + outside + "/mine",
				"write to the system":          "echo x > /etc/claybot-test",
				"read the passwords":           "cat /etc/shadow",
				"read claybot's environment":   "cat /proc/" + pid + "/environ",
				"read claybot's memory":        "head -c 1 /proc/" + pid + "/mem",
				"go through claybot's files":   "ls /proc/" + pid + "/root/ /proc/" + pid + "/cwd/",
				"follow a link to the token":   "ln -s " + data + "/web.token t && cat t",
				"name the token a second time": "ln " + data + "/web.token t2 && cat t2",
				"connect to claybot's socket":  "CLAYBOT_TEST_SOCKET=" + data + "/s ./connects -test.run '^TestConnects$' -test.v | grep CONNECTED",
				"signal claybot":               "kill -0 " + pid,
				"be root":                      `[ "$(id -u)" = 0 ] && cat /etc/shadow`,
			}
			if c == byLandlock {
				tries["use the common temporary folder"] = "echo x > /tmp/claybot-test-$$"
				if landlockVersion() < 6 {
					delete(tries, "signal claybot")
				}
			}
			for name, line := range tries {
				if out := run(t, w, "if { "+line+"; } >said 2>&1; then echo OUT; fi; head -c 300 said"); strings.HasPrefix(out, "OUT") {
					t.Errorf("%s: NOT REFUSED: %s", name, out)
				}
			}
			if b, err := os.ReadFile(filepath.Join(outside, "mine")); err != nil || string(b) != "x" {
				t.Errorf("a file outside: %q, %v", b, err)
			}
			if c == byUser && run(t, w, "id -u") == run(t, other, "id -u") {
				t.Error("two workspaces have one user")
			}
			if !strings.Contains(w.Place(), string(c)) {
				t.Errorf("an approval does not say it: %s", w.Place())
			}
		})
	}
}

// works checks that commands and file tools share their files.
func works(t *testing.T, w *view) {
	t.Helper()
	if err := w.WriteFile(t.Context(), "a/b/c.txt", []byte("one\n")); err != nil {
		t.Fatal(err)
	}
	const line = "echo two >> a/b/c.txt && cp a/b/c.txt a/d && mkdir e && mv a/d e/ && ln -s e/d f && cat f && ls /usr >/dev/null && t=$(mktemp) && echo three > $t && cat $t && rm $t"
	if out := run(t, w, line); out != "one\ntwo\nthree\n" {
		t.Errorf("the work: %q", out)
	}
	if b, err := w.ReadFile(t.Context(), "e/d", 100); err != nil || string(b) != "one\ntwo\n" {
		t.Errorf("a file of a command: %q, %v", b, err)
	}
	if err := w.WriteFile(t.Context(), "e/d", []byte("four\n")); err != nil {
		t.Error(err)
	}
	if out := run(t, w, "cat f; echo five > e/d; cat f; rm -r a e f"); out != "four\nfive\n" {
		t.Errorf("a file that was written anew: %q", out)
	}
	r, err := w.Exec(t.Context(), workspace.Command{Shell: "yes | head -n 20000"})
	if err != nil || r.Whole == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if out := run(t, w, "wc -l < "+r.Whole); strings.TrimSpace(out) != "20000" {
		t.Errorf("a long output: %q", out)
	}
	run(t, w, "rm -rf .claybot/output")
}

// What another confinement has left can be used with the next.
func TestConfinementChanges(t *testing.T) {
	p, _ := confinedTo(t, byUser)
	for _, c := range []confinement{byUser, byLandlock, byUser, unconfined, byUser} {
		p.best = func() confinement { return c }
		w := opened(t, p, "agent/a", func(s *workspace.Spec) {
			if c == unconfined {
				s.Unsafe = []string{Unconfined}
			}
		})
		works(t, w)
		if out := run(t, w, "echo "+string(c)[:4]+" >> log; cat log | wc -l"); out == "0\n" {
			t.Errorf("%s: %q", c, out)
		}
	}
	b, err := opened(t, p, "agent/a").ReadFile(t.Context(), "log", 100)
	if err != nil || strings.Count(string(b), "\n") != 5 {
		t.Errorf("%q, %v", b, err)
	}
}

// A file that has another name elsewhere is not given to the user of the commands.
func TestLinkedFileIsNotGiven(t *testing.T) {
	p, data := confinedTo(t, byUser)
	w := opened(t, p, "agent/a", func(s *workspace.Spec) { s.Unsafe = []string{Unconfined} })
	if err := os.Link(filepath.Join(data, "web.token"), filepath.Join(w.dir(), "linked")); err != nil {
		t.Fatal(err)
	}
	if out := run(t, opened(t, p, "agent/a"), "cat linked || echo refused"); !strings.Contains(out, "refused") {
		t.Errorf("%q", out)
	}
}

// A machine that cannot confine commands runs none, unless the operator names it.
func TestCannotConfine(t *testing.T) {
	p := newProvider(t)
	p.best = func() confinement { return "" }
	_, err := p.Open(t.Context(), "agent/a", open)
	if !workspace.Is(err, workspace.Refused) || !strings.Contains(err.Error(), "workspaces.unsafe") || !strings.Contains(err.Error(), "docker") {
		t.Errorf("%v", err)
	}
	if _, err := p.Confinement(); !workspace.Is(err, workspace.Refused) {
		t.Errorf("%v", err)
	}
	spec := open
	spec.Unsafe = []string{Unconfined}
	w, err := p.Open(t.Context(), "agent/a", spec)
	if err != nil {
		t.Fatal(err)
	}
	if out := run(t, w, "id -u"); strings.TrimSpace(out) != strconv.Itoa(os.Getuid()) {
		t.Errorf("%q", out)
	}
	spec.Unsafe = []string{"root"}
	if _, err := p.Open(t.Context(), "agent/a", spec); !workspace.Is(err, workspace.Refused) {
		t.Errorf("another protection: %v", err)
	}
}
