package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A token with the scope chat reaches its own conversations and nothing else, whatever it
// names. A new token with its name continues them.
func TestScopeChat(t *testing.T) {
	r := start(t)
	secret := r.say("the secret of the owner")
	r.ended(secret.Run)
	ok := map[string]bool{
		"POST /v1/chat/completions": true, "GET /v1/models": true, "GET /v1/models/{model}": true,
		"POST /v1/responses": true, "GET /v1/responses/{response}": true, "POST /v1/responses/{response}/cancel": true, "GET /conversations": true,
	}
	bearer := func(token, method, path, body string) got {
		return r.do(method, path, body, "Authorization", "Bearer "+token)
	}
	token := r.scoped("editor", "chat")
	for _, path := range slices.Sorted(maps.Keys(r.doc.Paths)) {
		for method, o := range r.doc.Paths[path] {
			method = strings.ToUpper(method)
			at := strings.NewReplacer("{agent}", secret.Agent, "{run}", secret.Run, "{", "", "}", "").Replace(path)
			body := ""
			if o.Body != nil {
				body = "{"
			}
			g := bearer(token, method, at, body)
			if refused := g.code == http.StatusForbidden && strings.Contains(g.body, "only its own conversations"); refused == ok[method+" "+path] || strings.Contains(g.body, "secret of") {
				t.Errorf("%s %s = %d %s", method, at, g.code, g.body)
			}
		}
	}
	ask := func(token, model string) got {
		return bearer(token, "POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hello `+model+`"}]}`)
	}
	first := ask(token, "claybot")
	if first.code != http.StatusOK || !strings.Contains(first.body, "re: hello claybot") {
		t.Fatalf("a message = %d %s", first.code, first.body)
	}
	var done struct{ ID string }
	r.read(first.body, &done)
	own := r.run(strings.TrimPrefix(done.ID, "chatcmpl-")).AgentID
	if g := bearer(token, "GET", "/v1/models", ""); g.code != http.StatusOK || !strings.Contains(g.body, `"agent:`+own+`"`) || !strings.Contains(g.body, `"night"`) || strings.Contains(g.body, secret.Agent) {
		t.Errorf("models = %d %s", g.code, g.body)
	}
	for model, want := range map[string]int{"agent:" + own: 200, "agent:" + secret.Agent: 403, "agent:none": 403, "none": 404} {
		if g := ask(token, model); g.code != want {
			t.Errorf("a message to %s = %d %s, want %d", model, g.code, g.body, want)
		}
		if g := bearer(token, "GET", "/v1/models/"+model, ""); g.code != want {
			t.Errorf("model %s = %d %s, want %d", model, g.code, g.body, want)
		}
	}
	if g := ask(r.scoped("other", "chat"), "agent:"+own); g.code != http.StatusForbidden {
		t.Errorf("the conversation of another token = %d %s", g.code, g.body)
	}
	reader := r.scoped("reader", "read")
	if g := ask(reader, "claybot"); g.code != http.StatusForbidden {
		t.Errorf("a message with the scope read = %d %s", g.code, g.body)
	}
	if g := bearer(reader, "GET", "/v1/models", ""); g.code != http.StatusOK || !strings.Contains(g.body, `"data":[]`) {
		t.Errorf("models with the scope read = %d %s", g.code, g.body)
	}
	if g := bearer(reader, "GET", "/v1/models/claybot", ""); g.code != http.StatusNotFound {
		t.Errorf("a model with the scope read = %d %s", g.code, g.body)
	}
	if g := bearer(r.scoped("operator", "operate"), "GET", "/v1/models", ""); !strings.Contains(g.body, `"agent:`+secret.Agent+`"`) || !strings.Contains(g.body, `"night"`) {
		t.Errorf("models with the scope operate = %d %s", g.code, g.body)
	}
}

// A token that is bound to an agent or a profile reaches nothing else, by whatever model it
// names.
func TestBoundTokens(t *testing.T) {
	r := start(t)
	theirs := r.say("hello")
	r.ended(theirs.Run)
	limited := func(name, limits string) string {
		var out struct{ Token string }
		r.read(r.do("POST", "/tokens", `{"name":"`+name+`","scope":"chat",`+limits+`}`).body, &out)
		return out.Token
	}
	tokens := map[string]string{"agent": limited("one", `"agent":"`+theirs.Agent+`"`), "profile": limited("two", `"profile":"night"`), "none": limited("three", `"profile":"gone"`)}
	ask := func(token, model string) (got, string) {
		g := r.do("POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"to `+model+`"}]}`, "Authorization", "Bearer "+tokens[token])
		if g.code != http.StatusOK {
			return g, ""
		}
		var done struct{ ID string }
		r.read(g.body, &done)
		return g, r.run(strings.TrimPrefix(done.ID, "chatcmpl-")).AgentID
	}
	for _, tc := range []struct {
		token, model string
		want         int
	}{
		{"agent", "claybot", 200},
		{"agent", "agent:" + theirs.Agent, 200},
		{"agent", "night", 403},
		{"agent", "agent:other", 403},
		{"profile", "claybot", 200},
		{"profile", "night", 200},
		{"profile", "default", 403},
		{"profile", "agent:" + theirs.Agent, 403},
		{"none", "claybot", 404},
	} {
		g, agent := ask(tc.token, tc.model)
		if g.code != tc.want || tc.token == "agent" && g.code == 200 && agent != theirs.Agent {
			t.Errorf("%s by the token of the %s = %d %s by %s, want %d", tc.model, tc.token, g.code, g.body, agent, tc.want)
		}
		if tc.token != "profile" || g.code != 200 {
			continue
		}
		var entry agentRow
		r.ask("GET", "/agents/"+agent, "", http.StatusOK, &entry)
		if entry.Descriptor.Profile != "night" {
			t.Errorf("%s is %+v", tc.model, entry)
		}
		if g, again := ask("profile", "agent:"+agent); g.code != http.StatusOK || again != agent {
			t.Errorf("its own conversation = %d %s", g.code, g.body)
		}
	}
	for token, want := range map[string][]string{"agent": {"claybot", "agent:" + theirs.Agent}, "profile": {"claybot", "night"}} {
		g := r.do("GET", "/v1/models", "", "Authorization", "Bearer "+tokens[token])
		for _, model := range want {
			if !strings.Contains(g.body, `"id":"`+model+`"`) || strings.Contains(g.body, `"default"`) {
				t.Errorf("models of the %s: %s", token, g.body)
			}
		}
	}
}
