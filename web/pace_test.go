package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/web"
)

// A token with limits keeps them over a rotation and a restart, and is nothing to versions
// that cannot limit it.
func TestLimitsOfTokens(t *testing.T) {
	dir := t.TempDir()
	w, stop := start(t, dir, nil)
	agent := "abcdefghijklmnopqrstuvwx"
	for _, tc := range []struct {
		body string
		want int
		says string
	}{
		{`{"name":"one","scope":"chat","agent":"` + agent + `","rate":7}`, 201, `"agent":"` + agent + `"`},
		{`{"name":"two","scope":"chat","profile":"night","budget":100000}`, 201, `"budget":100000`},
		{`{"name":"three","scope":"operate","rate":60}`, 201, `"rate":60`},
		{`{"name":"x","scope":"operate","agent":"` + agent + `"}`, 400, "need the scope chat"},
		{`{"name":"x","scope":"read","profile":"night"}`, 400, "need the scope chat"},
		{`{"name":"x","scope":"admin","budget":5}`, 400, "need the scope chat"},
		{`{"name":"x","scope":"chat","agent":"` + agent + `","profile":"night"}`, 400, "exclude"},
		{`{"name":"x","scope":"chat","agent":"` + agent + `","budget":5}`, 400, "exclude"},
		{`{"name":"x","scope":"chat","agent":"../x"}`, 400, "agent"},
		{`{"name":"x","scope":"chat","rate":-1}`, 400, "rate"},
		{`{"name":"x","scope":"chat","rate":100001}`, 400, "rate"},
		{`{"name":"x","scope":"chat","budget":-1}`, 400, "budget"},
	} {
		if got := w.ask(t, "POST", "/tokens", tc.body); got.code != tc.want || !strings.Contains(got.body, tc.says) {
			t.Errorf("%s = %d %s, want %d with %s", tc.body, got.code, got.body, tc.want, tc.says)
		}
	}
	stop()
	b, err := os.ReadFile(filepath.Join(dir, "web.tokens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var old struct { // what earlier versions read
		Tokens, Apart []struct{ Name string }
	}
	decode(t, string(b), &old)
	if len(old.Tokens)+len(old.Apart) != 0 {
		t.Errorf("an earlier version reads %+v", old)
	}
	w, _ = start(t, dir, nil)
	list := w.ask(t, "GET", "/tokens", "").body
	if !strings.Contains(list, `"rate":7`) || !strings.Contains(list, `"profile":"night"`) || !strings.Contains(list, `"agent":"`+agent) {
		t.Errorf("after a restart: %s", list)
	}
	if got := w.ask(t, "POST", "/tokens/one/rotate", ""); !strings.Contains(got.body, `"rate":7`) || !strings.Contains(got.body, `"agent":"`+agent) {
		t.Errorf("rotated: %s", got.body)
	}
	if got := w.srv.TokenBudgets(); len(got) != 1 || got[0] != (web.TokenBudget{Token: "two", Limit: 100000}) {
		t.Errorf("budgets %v", got)
	}
}

// The rate holds over any minute, and a token that waited for it goes on.
func TestPace(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := web.NewAuthForTest(t, dir)
		secret, err := a.CreateLimited("ci", web.Read, web.Limits{Rate: 3})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if wait := a.Wait(secret); wait != 0 {
				t.Fatalf("request %d waits %v", i, wait)
			}
		}
		wait := a.Wait(secret)
		if wait <= 0 || wait > 20*time.Second {
			t.Fatalf("the fourth waits %v", wait)
		}
		time.Sleep(wait)
		if again, next := a.Wait(secret), a.Wait(secret); again != 0 || next == 0 {
			t.Errorf("after that it waits %v, then %v", again, next)
		}
		time.Sleep(time.Hour)
		for i := range 4 {
			if wait := a.Wait(secret); (wait == 0) != (i < 3) {
				t.Errorf("an hour later request %d waits %v", i, wait)
			}
		}
	})
}

// A request above the rate or the budget of its token gets 429 and when to come again, in
// the shape that OpenAI clients read where they look for it.
func TestTokensAboveTheirLimits(t *testing.T) {
	spent, failing := true, false
	w, _ := start(t, t.TempDir(), func(c *web.Config) {
		c.Routes = append(c.Routes, web.Route{Pattern: "POST /v1/chat/completions", Scope: web.Operate, Chat: true, Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { web.Words(rw, 200, "said") })},
			web.Route{Pattern: "GET /v1/models", Scope: web.Read, Chat: true, Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { web.Words(rw, 200, "models") })},
			web.Route{Pattern: "GET /conversations", Scope: web.Read, Chat: true, Handler: http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { web.Words(rw, 200, "conversations") })})
		c.Spent = func(_ context.Context, token string) (time.Time, bool, error) {
			if failing {
				return time.Time{}, false, errors.New("for the test")
			}
			return time.Now().Add(time.Hour), spent && token == "poor", nil
		}
	})
	secrets := make(map[string]string)
	for name, limits := range map[string]string{"slow": `"rate":1`, "poor": `"budget":9`, "bound": `"profile":"night"`} {
		var out struct{ Token string }
		decode(t, w.ask(t, "POST", "/tokens", fmt.Sprintf(`{"name":%q,"scope":"chat",%s}`, name, limits)).body, &out)
		secrets[name] = out.Token
	}
	ask := func(name, method, path string) answer {
		body := ""
		if method == "POST" {
			body = "{}"
		}
		return do(t, browser(t), method, w.url(path), body, "Authorization", "Bearer "+secrets[name])
	}
	refused := func(what string, got answer, code string, least int) {
		t.Helper()
		seconds, _ := strconv.Atoi(got.head.Get("Retry-After"))
		if got.code != http.StatusTooManyRequests || seconds < least || !strings.Contains(got.body, code) || !strings.Contains(got.body, `"param":null`) {
			t.Errorf("%s = %d %s, after %d s", what, got.code, got.body, seconds)
		}
	}
	if got := ask("slow", "GET", "/v1/models"); got.code != 200 {
		t.Errorf("the first request = %d %s", got.code, got.body)
	}
	refused("the second of a minute", ask("slow", "GET", "/v1/models"), "rate_limit_exceeded", 1)
	refused("a message above the budget", ask("poor", "POST", "/v1/chat/completions"), "insufficient_quota", 3000)
	if got := ask("poor", "GET", "/v1/models"); got.code != 200 {
		t.Errorf("reading above the budget = %d %s", got.code, got.body)
	}
	failing = true
	if got := ask("poor", "POST", "/v1/chat/completions"); got.code != 200 {
		t.Errorf("with a store that fails = %d %s", got.code, got.body)
	}
	failing, spent = false, false
	if got := ask("poor", "POST", "/v1/chat/completions"); got.code != 200 {
		t.Errorf("the next day = %d %s", got.code, got.body)
	}
	if got := ask("bound", "GET", "/conversations"); got.code != 403 || !strings.Contains(got.body, "bound to one") {
		t.Errorf("a bound token elsewhere = %d %s", got.code, got.body)
	}
	if got := ask("bound", "POST", "/v1/chat/completions"); got.code != 200 {
		t.Errorf("a bound token = %d %s", got.code, got.body)
	}
}
