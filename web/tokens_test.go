package web_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

func TestTokensOfPrograms(t *testing.T) {
	dir := t.TempDir()
	w, stop := start(t, dir, nil)
	past, future := claybot.At(time.Now().Add(-time.Hour)), claybot.At(time.Now().Add(24*time.Hour))
	for _, tc := range []struct {
		body string
		want int
		says string
	}{
		{`{"name":"ci","scope":"operate"}`, 201, `"token":"claybot_`},
		{`{"name":"ci","scope":"read"}`, 409, "exists"},
		{fmt.Sprintf(`{"name":"soon.over-1_x","scope":"read","expires":%d}`, future), 201, `"expires":`},
		{fmt.Sprintf(`{"name":"late","scope":"read","expires":%d}`, past), 400, "expires"},
		{`{"name":"late","scope":"read","expires":-1}`, 400, "expires"},
		{`{"name":"late","scope":"read","expires":"tomorrow"}`, 400, "expires"},
		{`{"name":"owner","scope":"admin"}`, 400, "owner"},
		{`{"name":"x","scope":"approve"}`, 201, `"scope":"approve"`},
		{`{"name":"a","scope":"root"}`, 400, "scope"},
		{`{"name":"a","scope":""}`, 400, "scope"},
		{`{"name":"a"}`, 400, "scope"},
		{`{"name":"","scope":"read"}`, 400, "name"},
		{`{"name":"A","scope":"read"}`, 400, "name"},
		{`{"name":"../x","scope":"read"}`, 400, "name"},
		{`{"name":"` + strings.Repeat("a", 65) + `","scope":"read"}`, 400, "name"},
		{`{"name":"a","scope":"read","hash":"x"}`, 400, "hash"},
		{`[]`, 400, "JSON"},
	} {
		if got := w.ask(t, "POST", "/tokens", tc.body); got.code != tc.want || !strings.Contains(got.body, tc.says) {
			t.Errorf("%s = %d %s, want %d with %s", tc.body, got.code, got.body, tc.want, tc.says)
		}
	}
	first := w.token(t, "rotated", web.Read)
	got := w.ask(t, "POST", "/tokens/rotated/rotate", "")
	var out struct {
		Token string
		Scope web.Scope
	}
	decode(t, got.body, &out)
	if got.code != 200 || out.Token == first || out.Scope != web.Read {
		t.Errorf("rotate = %v", got)
	}
	for path, want := range map[string]int{
		"POST /tokens/none/rotate": 404, "DELETE /tokens/none": 404, "DELETE /tokens/owner": 409, "GET /tokens/ci": 405, "DELETE /tokens/rotated%2frotate": 404,
	} {
		method, path, _ := strings.Cut(path, " ")
		if got := w.ask(t, method, path, ""); got.code != want || got.errorCode() == "" {
			t.Errorf("%s %s = %d %s, want %d", method, path, got.code, got.body, want)
		}
	}
	b := browser(t)
	who := func(token string) answer {
		return do(t, b, "GET", w.url("/data"), "", "Authorization", "Bearer "+token)
	}
	if got := who(first); got.code != 401 {
		t.Errorf("the token before its rotation = %d", got.code)
	}
	if got := who(out.Token); got.code != 200 || !strings.Contains(got.body, `"name":"rotated"`) || !strings.Contains(got.body, `"user":"token:rotated"`) {
		t.Errorf("the token after its rotation = %v", got)
	}
	list := w.ask(t, "GET", "/tokens", "")
	if strings.Contains(list.body, out.Token) || strings.Contains(list.body, "hash") || !strings.Contains(list.body, `{"name":"owner","scope":"admin"}`) || strings.Count(list.body, `"name"`) != 5 {
		t.Errorf("list %s", list.body)
	}
	stop()

	path := filepath.Join(dir, "web.tokens.json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("tokens file: %v %v", info, err)
	}
	w, _ = start(t, dir, nil)
	if got := who(out.Token); got.code != 200 {
		t.Errorf("the token after a restart = %d", got.code)
	}
	if got := w.ask(t, "DELETE", "/tokens/rotated", ""); got.code != 204 {
		t.Errorf("revoke = %v", got)
	}
	if got := who(out.Token); got.code != 401 {
		t.Errorf("a revoked token = %d", got.code)
	}
}

// Tokens that are older than the scope approve keep what operate allowed, a rotation
// included; new ones have exactly their scope, which an older version reads as operate.
func TestTokensOlderThanApprove(t *testing.T) {
	dir := t.TempDir()
	hash := strings.Repeat("A", 42) // all but the last character
	path := filepath.Join(dir, "web.tokens.json")
	old := fmt.Sprintf(`{"tokens":[{"name":"boss","scope":"admin","hash":%q,"created":1},{"name":"late","scope":"operate","hash":%q,"created":1,"expires":2},`+
		`{"name":"op","scope":"operate","hash":%q,"created":1},{"name":"see","scope":"read","hash":%q,"created":1}]}`, hash+"E", hash+"I", hash+"M", hash+"Q")
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	a := web.NewAuthForTest(t, dir)
	made := make(map[string]string)
	for _, name := range []string{"op", "see", "boss"} {
		var err error
		if made[name], err = a.Rotate(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, scope := range []web.Scope{web.Read, web.Operate, web.Approve, web.Admin} {
		var err error
		if made["new-"+string(scope)], err = a.Create("new-"+string(scope), scope, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []web.AuthForTest{a, web.NewAuthForTest(t, dir)} { // and after a restart
		for name, want := range map[string]web.Scope{
			"op": web.Approve, "see": web.Read, "boss": web.Admin,
			"new-read": web.Read, "new-operate": web.Operate, "new-approve": web.Approve, "new-admin": web.Admin,
		} {
			who, _, leave, ok := a.Enter(made[name])
			if !ok || who.Scope != want {
				t.Fatalf("%s has the scope %q, %v; want %q", name, who.Scope, ok, want)
			}
			leave()
		}
	}
	if got, err := web.LegacyTokens(dir); err != nil || !slices.Equal(got, []string{"boss", "op"}) {
		t.Errorf("older tokens: %v, %v", got, err)
	}
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), `"scope":"approve"`) {
		t.Errorf("an older version cannot read %s, %v", b, err)
	}
	if got, err := web.LegacyTokens(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("without tokens: %v, %v", got, err)
	}
}

// An earlier version ignores tokens with the scope chat, and reads all others as before.
func TestChatTokensInOlderVersions(t *testing.T) {
	dir := t.TempDir()
	a := web.NewAuthForTest(t, dir)
	made := make(map[string]string)
	for _, scope := range []web.Scope{web.Chat, web.Read} {
		var err error
		if made["a-"+string(scope)], err = a.Create("a-"+string(scope), scope, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Create("a-chat", web.Read, time.Time{}); !errors.Is(err, storage.ErrState) {
		t.Errorf("another token with its name: %v", err)
	}
	secret, err := a.Rotate("a-chat")
	if err != nil {
		t.Fatal(err)
	}
	made["a-chat"] = secret
	for _, a := range []web.AuthForTest{a, web.NewAuthForTest(t, dir)} {
		for name, secret := range made {
			who, _, leave, ok := a.Enter(secret)
			if !ok || "a-"+string(who.Scope) != name || who.Name != name {
				t.Fatalf("%s is %v, %v", name, who, ok)
			}
			leave()
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "web.tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var old struct { // what earlier versions read
		Tokens []struct{ Name, Scope string }
	}
	decode(t, string(b), &old)
	if len(old.Tokens) != 1 || old.Tokens[0].Name != "a-read" || old.Tokens[0].Scope != "read" {
		t.Errorf("an earlier version reads %+v", old)
	}
	if err := a.Revoke("a-chat"); err != nil {
		t.Fatal(err)
	}
	if _, _, _, ok := a.Enter(secret); ok {
		t.Error("a revoked token is accepted")
	}
}

func TestTooManyTokens(t *testing.T) {
	a := web.NewAuthForTest(t, t.TempDir())
	for i := range 64 {
		if _, err := a.Create(fmt.Sprintf("t%d", i), web.Read, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	var no web.Refusal
	if _, err := a.Create("more", web.Read, time.Time{}); !errors.As(err, &no) {
		t.Errorf("one more: %v", err)
	}
}

// What cannot be stored has not happened.
func TestTokensThatCannotBeStored(t *testing.T) {
	dir := t.TempDir()
	a := web.NewAuthForTest(t, dir)
	secret, err := a.Create("ci", web.Read, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "web.tokens.json")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "web.tokens.json", "x"), 0o700); err != nil { // no file can take its place
		t.Fatal(err)
	}
	if fresh, err := a.Rotate("ci"); err == nil {
		t.Errorf("rotated to %d characters", len(fresh))
	}
	_, ended, leave, ok := a.Enter(secret)
	if !ok || ended() {
		t.Error("the old token ended although the new one was not stored")
	}
	leave()
	left, err := filepath.Glob(filepath.Join(dir, "web.tokens.json.*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A file of tokens that is not what was written admits no caller, and is kept.
func TestDamagedTokens(t *testing.T) {
	hash := strings.Repeat("A", 42) + "E" // 32 bytes
	good := `{"name":"a","scope":"read","hash":"` + hash + `","created":1}`
	if _, err := web.ReadTokens([]byte(`{"tokens":[` + good + `]}`)); err != nil {
		t.Fatalf("a good file: %v", err)
	}
	for _, text := range []string{
		"", "{", "[]", "null x", `{"tokens":[` + good + `,` + good + `]}`,
		`{"tokens":[` + strings.Replace(good, "read", "root", 1) + `]}`,
		`{"tokens":[` + strings.Replace(good, `"a"`, `"owner"`, 1) + `]}`,
		`{"tokens":[` + strings.Replace(good, hash, "", 1) + `]}`,
		`{"tokens":[` + strings.Replace(good, hash, strings.Repeat("A", 43), 1) + `]}`,
		`{"tokens":[` + strings.Replace(good, hash, "AAAA", 1) + `]}`,
		`{"tokens":[` + strings.Replace(good, `"created":1`, `"created":1,"expires":-1`, 1) + `]}`,
	} {
		if got, err := web.ReadTokens([]byte(text)); err == nil {
			t.Errorf("%s = %v", text, got)
		}
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "web.tokens.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, _ := start(t, dir, nil)
	if !strings.Contains(w.logged(), "cannot be read") {
		t.Errorf("logged %s", w.logged())
	}
	if b, err := os.ReadFile(path + ".damaged"); err != nil || string(b) != "{" {
		t.Errorf("kept: %q %v", b, err)
	}
	w.token(t, "new", web.Read)
}

func TestTokensExpire(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := web.NewAuthForTest(t, dir)
		secret, err := a.Create("short", web.Operate, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour - time.Second)
		who, _, leave, ok := a.Enter(secret)
		if !ok || who != (web.Caller{Name: "short", Scope: web.Operate}) {
			t.Fatalf("before its end: %v %v", who, ok)
		}
		leave()
		if a.Under() != 0 {
			t.Error("a request that has ended is remembered")
		}
		time.Sleep(time.Second)
		if _, _, _, ok := a.Enter(secret); ok {
			t.Error("taken after its end")
		}
		if _, err := a.Rotate("short"); !errors.Is(err, storage.ErrState) {
			t.Errorf("rotated after its end: %v", err)
		}
	})
}

// A request under way ends at the moment when its session or token does.
func TestRequestsEndWithTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		rec := &silent{}
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			if _, err := w.Write([]byte("late")); !errors.Is(err, web.ErrLoggedOut) {
				t.Errorf("a write after the end: %v", err)
			}
			if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); !errors.Is(err, web.ErrLoggedOut) {
				t.Errorf("a deadline after the end: %v", err)
			}
		})
		defer func() {
			if got := recover(); got != any(http.ErrAbortHandler) {
				t.Errorf("the connection stays: %v", got)
			}
			if d := time.Since(begin); d != 12*time.Hour || rec.n != 0 {
				t.Errorf("ended after %v with %d bytes", d, rec.n)
			}
		}()
		req, err := http.NewRequestWithContext(t.Context(), "GET", "/", nil)
		if err != nil {
			t.Fatal(err)
		}
		web.Bound(h, rec, req, begin.Add(12*time.Hour))
	})
}

// silent is a response of which only the length counts.
type silent struct{ n int }

func (s *silent) Header() http.Header         { return http.Header{} }
func (s *silent) WriteHeader(int)             {}
func (s *silent) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// Logging out ends the sessions that came before by renewal, too, and whatever
// is done with them.
func TestLogoutEndsTheWholeLogin(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := web.NewAuthForTest(t, dir)
		cookie, _ := a.Login(a.Code())
		other, _ := a.Login(a.Code())
		_, ended, leave, _ := a.Enter(cookie)
		_, others, leaveOther, _ := a.Enter(other)
		defer leaveOther()
		defer leave()
		time.Sleep(2 * time.Hour)
		fresh := a.Renew(cookie)
		if ended() {
			t.Error("a renewal ended a request")
		}
		a.Logout(fresh)
		if !ended() || a.Session(cookie) || a.Session(fresh) {
			t.Error("something goes on after the logout")
		}
		if others() || !a.Session(other) {
			t.Error("the logout of one ended another")
		}
		for range 70 {
			a.Login(a.Code())
		}
		if a.Sessions() > 64 || !others() {
			t.Errorf("%d sessions; the oldest made room: %v", a.Sessions(), others())
		}
	})
}

// No secret is in a log, in an answer that is not the one that made it, or in a
// file other than the owner's.
func TestTokenHygiene(t *testing.T) {
	dir := t.TempDir()
	w, stop := start(t, dir, nil)
	token := w.token(t, "ci", web.Admin)
	var rotated struct{ Token string }
	decode(t, w.ask(t, "POST", "/tokens/ci/rotate", "").body, &rotated)
	b := w.loggedIn(t)
	link := w.srv.NewLoginLink().URL
	_, code, _ := strings.Cut(link, "token=")
	secrets := map[string]string{"owner": w.owner(t), "first": token, "second": rotated.Token, "cookie": w.cookie(t, b).Value, "code": code}
	before := w.owner(t)
	answers := []answer{
		w.ask(t, "GET", "/tokens", ""), do(t, b, "GET", w.url("/data"), ""), do(t, b, "GET", w.url("/session"), ""), do(t, b, "GET", w.url("/login"), ""),
		do(t, b, "GET", w.url("/nowhere?token="+before), ""), do(t, b, "GET", w.url("/login?token="+before), ""),
		do(t, b, "POST", w.url("/tokens"), `{"name":"`+before+`","scope":"read"}`, same...),
		do(t, b, "POST", w.url("/login"), `{"token":"x`+before+`"}`, same...),
		do(t, b, "POST", w.url("/data"), `{"`+before+`":1}`[:3]+`":1}`, same...),
		do(t, browser(t), "GET", w.url("/data"), "", "Authorization", "Bearer x"+token),
		do(t, browser(t), "GET", w.url("/data"), "", "Authorization", "Bearer "+rotated.Token),
		do(t, browser(t), "HEAD", link, ""), do(t, browser(t), "GET", link, "", "Sec-Purpose", "prefetch;prerender"),
		w.ask(t, "POST", "/tokens/owner/rotate", ""),
	}
	secrets["new owner"] = w.owner(t)
	if secrets["new owner"] == before {
		t.Error("the owner's token was not rotated")
	}
	answers = append(answers, do(t, browser(t), "GET", link, ""), do(t, b, "GET", w.url("/data"), "")) // neither counts any more
	stop()
	for name, secret := range secrets {
		for i, a := range answers {
			if strings.Contains(a.body, secret) || strings.Contains(fmt.Sprint(a.head), secret) {
				t.Errorf("answer %d has the secret %s: %v", i, name, a)
			}
		}
		if strings.Contains(w.logged(), secret) {
			t.Errorf("the log has the secret %s", name)
		}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		for name, secret := range secrets {
			if strings.Contains(string(b), secret) && (name != "new owner" || d.Name() != "web.token") {
				t.Errorf("%s has the secret %s", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
