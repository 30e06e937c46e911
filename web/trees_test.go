package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/web"
)

// A ground is a tree on which a server can be started again and again.
type ground struct {
	dir  string
	addr string // of the server before
	tree func(t *testing.T) (tree *storage.Mirror, cookie string, stop func())
}

// grounds are the trees of a single machine and of a cluster.
var grounds = map[string]func(t *testing.T) *ground{
	"directory": func(t *testing.T) *ground {
		dir := t.TempDir()
		return &ground{dir: dir, tree: func(*testing.T) (*storage.Mirror, string, func()) {
			return web.DirectoryForTest(dir, slog.New(slog.DiscardHandler)), "", func() {}
		}}
	},
	"cluster": func(t *testing.T) *ground {
		tree := files.OpenTree(files.TreeConfig{Dir: t.TempDir()})
		return &ground{dir: t.TempDir(), tree: func(t *testing.T) (*storage.Mirror, string, func()) {
			mirror := storage.NewMirror(tree)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { _ = mirror.Run(ctx) })
			return mirror, "nodes", func() { cancel(); wg.Wait() }
		}}
	},
}

// start starts a server, at the address of the one before.
func (g *ground) start(t *testing.T) (w *world, stop func()) {
	t.Helper()
	tree, cookie, end := g.tree(t)
	w, down := start(t, g.dir, func(c *web.Config) {
		lasting(c)
		if g.addr != "" {
			c.Addr = g.addr
		}
		c.Tree, c.Cookie = tree, cookie
	})
	g.addr = w.srv.Addr()
	stop = sync.OnceFunc(func() { down(); end() })
	t.Cleanup(stop)
	return w, stop
}

// What is given and taken counts with the next request and after a restart, whatever
// the tree is.
func TestTrees(t *testing.T) {
	for name, open := range grounds {
		for what, test := range map[string]func(t *testing.T, g *ground, cluster bool){
			"token": tokenOnTree, "session": sessionOnTree, "owner": ownerOnTree, "link": linkOnTree,
		} {
			t.Run(name+"/"+what, func(t *testing.T) { test(t, open(t), name == "cluster") })
		}
	}
}

// is checks what a credential gets.
func (w *world) is(t *testing.T, what string, want int, head ...string) {
	t.Helper()
	if got := w.data(t, head...); got != want {
		t.Errorf("%s = %d, want %d", what, got, want)
	}
}

func tokenOnTree(t *testing.T, g *ground, _ bool) {
	w, stop := g.start(t)
	first := "Bearer " + w.token(t, "ci", web.Read)
	w.is(t, "a new token", 200, "Authorization", first)
	var out struct{ Token string }
	decode(t, w.ask(t, "POST", "/tokens/ci/rotate", "").body, &out)
	second := "Bearer " + out.Token
	w.is(t, "the token before its rotation", 401, "Authorization", first)
	stop()
	w, stop = g.start(t)
	w.is(t, "the token before its rotation, after a restart", 401, "Authorization", first)
	w.is(t, "a token after a restart", 200, "Authorization", second)
	s := open(t, browser(t), "GET", w.url("/stream"), "Authorization", second)
	s.first(t)
	if got := w.ask(t, "DELETE", "/tokens/ci", ""); got.code != http.StatusNoContent {
		t.Errorf("revoke = %v", got)
	}
	w.is(t, "a revoked token", 401, "Authorization", second)
	if rest := s.rest(); strings.Contains(rest, "last words") {
		t.Errorf("the stream of a revoked token said %q", rest)
	}
	stop()
	w, _ = g.start(t)
	w.is(t, "a revoked token after a restart", 401, "Authorization", second)
}

func sessionOnTree(t *testing.T, g *ground, _ bool) {
	w, stop := g.start(t)
	b := w.loggedIn(t)
	cookie, other := w.cookie(t, b).String(), w.cookie(t, w.loggedIn(t)).String()
	stop()
	w, stop = g.start(t)
	w.is(t, "a session after a restart", 200, "Cookie", cookie)
	if got := do(t, b, "POST", w.url("/logout"), "", same...); got.code != http.StatusNoContent {
		t.Errorf("logout = %v", got)
	}
	w.is(t, "a session that has ended", 401, "Cookie", cookie)
	w.is(t, "another session", 200, "Cookie", other)
	stop()
	w, stop = g.start(t)
	w.is(t, "a session that has ended, after a restart", 401, "Cookie", cookie)
	w.is(t, "another session after a restart", 200, "Cookie", other)
	if got := do(t, w.loggedIn(t), "POST", w.url("/logout?all=1"), "", same...); got.code != http.StatusNoContent {
		t.Errorf("logout of all = %v", got)
	}
	w.is(t, "a session after the end of all", 401, "Cookie", other)
	stop()
	w, _ = g.start(t)
	w.is(t, "a session after the end of all and a restart", 401, "Cookie", other)
}

func ownerOnTree(t *testing.T, g *ground, _ bool) {
	w, stop := g.start(t)
	old := w.owner(t)
	_, code, _ := strings.Cut(w.srv.NewLoginLink().URL, "?token=")
	cookie := w.cookie(t, w.loggedIn(t)).String()
	if got := w.ask(t, "POST", "/tokens/owner/rotate", ""); got.code != http.StatusOK {
		t.Errorf("rotate = %v", got)
	}
	w.is(t, "the owner's token", 200, "Authorization", "Bearer "+w.owner(t))
	w.is(t, "the owner's old token", 401, "Authorization", "Bearer "+old)
	w.is(t, "a session from before", 401, "Cookie", cookie)
	if got := do(t, browser(t), "POST", w.url("/login"), `{"token":"`+code+`"}`); got.code != 401 {
		t.Errorf("a link from before = %d", got.code)
	}
	fresh := w.owner(t)
	stop()
	w, _ = g.start(t)
	if w.owner(t) != fresh {
		t.Error("a restart changed the owner's token")
	}
	w.is(t, "the owner's token after a restart", 200, "Authorization", "Bearer "+fresh)
	w.is(t, "the owner's old token after a restart", 401, "Authorization", "Bearer "+old)
}

// Links of a single machine end with its process; another member has those of a
// cluster.
func linkOnTree(t *testing.T, g *ground, cluster bool) {
	w, stop := g.start(t)
	var codes []string
	for range 2 {
		link := w.srv.NewLoginLink()
		_, code, _ := strings.Cut(link.URL, "?token=")
		if codes = append(codes, code); link.Alone {
			t.Error("a link is told as one of this member alone")
		}
	}
	login := func(code string) int {
		return do(t, browser(t), "POST", w.url("/login"), `{"token":"`+code+`"}`).code
	}
	if first, again := login(codes[0]), login(codes[0]); first != 204 || again != 401 {
		t.Errorf("a link, twice: %d, %d", first, again)
	}
	stop()
	w, _ = g.start(t)
	want := 401
	if cluster {
		want = 204
	}
	if got := login(codes[1]); got != want {
		t.Errorf("a link after a restart = %d, want %d", got, want)
	}
}

// Secrets of the version before the tree, and the texts that it kept of them.
var (
	oldOwner = strings.Repeat("o", 43)
	oldToken = "claybot_" + strings.Repeat("t", 43)
	oldOver  = "claybot_" + strings.Repeat("e", 43)
	oldIn    = strings.Repeat("s", 43)
	oldNamed = strings.Repeat("n", 43) // a session that has the id of its login
)

func oldHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// oldDirectory is a data directory as the version before the tree left it.
func oldDirectory(t *testing.T) (dir string, old map[string]string) {
	t.Helper()
	dir = t.TempDir()
	since, until := time.Now().Add(-time.Minute).Format(time.RFC3339Nano), time.Now().Add(time.Hour).Format(time.RFC3339Nano)
	old = map[string]string{
		"web.token": oldOwner + "\n",
		"web.tokens.json": fmt.Sprintf(`{"tokens":[{"name":"ci","scope":"operate","hash":%q,"created":1767225600000},`+
			`{"name":"over","scope":"admin","hash":%q,"created":1,"expires":2}]}`, oldHash(oldToken), oldHash(oldOver)),
		"web.sessions.json": fmt.Sprintf(`{%q:{"since":%q,"until":%q},%q:{"since":%q,"until":%q,"login":"one"}}`,
			oldHash(oldIn), since, until, oldHash(oldNamed), since, until),
	}
	for name, text := range old {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, old
}

// oldIs checks that all that counted before the upgrade counts now, and nothing else.
func oldIs(t *testing.T, w *world) {
	t.Helper()
	name := "claybot-" + w.srv.Addr()[strings.LastIndexByte(w.srv.Addr(), ':')+1:]
	for what, x := range map[string]struct {
		head, value string
		want        int
	}{
		"owner":            {"Authorization", "Bearer " + oldOwner, 200},
		"token":            {"Authorization", "Bearer " + oldToken, 200},
		"expired token":    {"Authorization", "Bearer " + oldOver, 401},
		"session":          {"Cookie", name + "=" + oldNamed, 200},
		"session, no id":   {"Cookie", name + "=" + oldIn, 200},
		"hash of a token":  {"Authorization", "Bearer " + oldHash(oldToken), 401},
		"hash of a cookie": {"Cookie", name + "=" + oldHash(oldIn), 401},
	} {
		w.is(t, what+" of the version before", x.want, x.head, x.value)
	}
	if w.owner(t) != oldOwner {
		t.Error("the owner has another token")
	}
}

// An old data directory opens as it is. The files stay where they were, in the form
// that the version before reads, so there is no step between which a kill could fall
// and a downgrade knows what was revoked.
func TestOldDirectory(t *testing.T) {
	dir, old := oldDirectory(t)
	w, stop := start(t, dir, lasting)
	addr := w.srv.Addr()
	oldIs(t, w)
	stop()
	for name, text := range old {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != text {
			t.Errorf("opening alone changed %s: %s, %v", name, b, err)
		}
	}
	w, stop = start(t, dir, func(c *web.Config) { c.Addr = addr })
	w.loggedIn(t)
	w.token(t, "new", web.Read)
	oldIs(t, w)
	w.ask(t, "DELETE", "/tokens/over", "")
	stop()
	var tokens struct {
		Tokens []map[string]any `json:"tokens"`
	}
	var sessions map[string]struct{ Since, Until, Login string }
	for name, v := range map[string]any{"web.tokens.json": &tokens, "web.sessions.json": &sessions} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		decode(t, string(b), v)
	}
	if len(tokens.Tokens) != 2 || tokens.Tokens[0]["hash"] != oldHash(oldToken) || tokens.Tokens[1]["name"] != "new" {
		t.Errorf("the file of tokens has %v", tokens)
	}
	if s := sessions[oldHash(oldNamed)]; len(sessions) != 3 || s.Login != "one" || sessions[oldHash(oldIn)].Login == "" {
		t.Errorf("the file of sessions has %v", sessions)
	}
	checkFiles(t, dir, "web.sessions.json", "web.token", "web.tokens.json")
}

// checkFiles checks the regular files of a directory, which only its owner reads.
func checkFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var is []string
	for _, e := range all {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().IsRegular() {
			if is = append(is, e.Name()); info.Mode() != 0o600 {
				t.Errorf("%s has mode %v", e.Name(), info.Mode())
			}
		}
	}
	if !slices.Equal(is, want) {
		t.Errorf("the files are %v, want %v", is, want)
	}
}

// A kill while a file is written leaves half of another one beside it, under the
// name that this version or the one before gives to that.
func TestKilledWhileWriting(t *testing.T) {
	dir, old := oldDirectory(t)
	for name := range old {
		for _, half := range []string{name + ".new", name + ".1234567"} {
			if err := os.WriteFile(filepath.Join(dir, half), []byte(`{"tokens":[{"na`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	w, stop := start(t, dir, lasting)
	addr := w.srv.Addr()
	oldIs(t, w)
	secret := "Bearer " + w.token(t, "new", web.Read)
	stop()
	w, _ = start(t, dir, func(c *web.Config) { c.Addr = addr })
	oldIs(t, w)
	w.is(t, "a token made after the kill", 200, "Authorization", secret)
}

// The owner's token and the tokens of programs must be readable; sessions need not.
func TestUnreadableFiles(t *testing.T) {
	for name, want := range map[string]bool{"web.token": false, "web.tokens.json": false, "web.sessions.json": true} {
		dir, _ := oldDirectory(t)
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, path); err != nil { // which cannot be read, not even by root
			t.Fatal(err)
		}
		_, err := newServer(web.Config{Addr: "127.0.0.1:0", Dir: dir})
		if (err == nil) != want || err != nil && !strings.HasPrefix(err.Error(), "web: open "+path+": ") {
			t.Errorf("without %s: %v", name, err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s was replaced: %v, %v", name, info, err)
		}
	}
	dir := t.TempDir()
	if err := os.Symlink("elsewhere", filepath.Join(dir, "web.sessions.json")); err != nil {
		t.Fatal(err)
	}
	w, _ := start(t, dir, nil)
	w.loggedIn(t)
	checkFiles(t, dir, "web.sessions.json", "web.token")
}
