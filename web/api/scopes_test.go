package api_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot/runs"
)

// Every operation needs its scope, and a stranger gets nothing of any.
func TestScopes(t *testing.T) {
	r := start(t)
	tokens := map[string]string{"": "", "read": r.scoped("r", "read"), "operate": r.scoped("o", "operate"), "approve": r.scoped("a", "approve"), "admin": r.token}
	rank := map[string]int{"": 0, "read": 1, "operate": 2, "approve": 3, "admin": 4}
	secret := r.say("the secret of the owner")
	r.ended(secret.Run)
	for _, path := range slices.Sorted(maps.Keys(r.doc.Paths)) {
		for method, o := range r.doc.Paths[path] {
			method = strings.ToUpper(method)
			at := strings.NewReplacer("{agent}", secret.Agent, "{run}", secret.Run, "{", "", "}", "").Replace(path)
			body := ""
			if o.Body != nil {
				body = "{"
			}
			for have, token := range tokens {
				if rank[have] >= rank[o.Scope] && have == "admin" && method != "GET" {
					continue // it would do it
				}
				if token != "" {
					token = "Bearer " + token
				}
				g := r.do(method, at, body, "Authorization", token)
				switch {
				case have == "" && g.code != http.StatusUnauthorized:
					t.Errorf("%s %s for a stranger = %d", method, at, g.code)
				case have != "" && rank[have] < rank[o.Scope] && g.code != http.StatusForbidden:
					t.Errorf("%s %s with %s = %d", method, at, have, g.code)
				case rank[have] >= rank[o.Scope] && (g.code == http.StatusForbidden || g.code == http.StatusUnauthorized):
					t.Errorf("%s %s with %s = %d %s", method, at, have, g.code, g.body)
				}
				if rank[have] < rank[o.Scope] && strings.Contains(g.body, "secret of") {
					t.Errorf("%s %s with %q tells %s", method, at, have, g.body)
				}
			}
		}
	}
}

// Only the scope approve lets a program answer approvals and questions for approvers, one by
// one or by their run; a token that is older than this scope still may. Nothing of what was
// refused is stored.
func TestAnsweringNeedsApprove(t *testing.T) {
	old := "claybot_FAKE-old"
	sum := sha256.Sum256([]byte(old))
	r := start(t, func(r *rig) {
		r.engine, r.graphs = "plan", map[string]runs.Engine{"plan": approval("slack/U1")}
		stored := fmt.Sprintf(`{"tokens":[{"name":"old","scope":"operate","hash":%q,"created":1}]}`, base64.RawURLEncoding.EncodeToString(sum[:]))
		if err := os.WriteFile(filepath.Join(r.dir, "web.tokens.json"), []byte(stored), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	tokens := map[string]string{"read": r.scoped("r", "read"), "operate": r.scoped("o", "operate"), "approve": r.scoped("a", "approve"), "admin": r.scoped("boss", "admin"), "old": old}
	may := map[string]bool{"approve": true, "admin": true, "old": true}
	for _, text := range []string{"paint it", "the approvers choose"} {
		for _, way := range []string{"question", "run"} {
			for _, scope := range slices.Sorted(maps.Keys(tokens)) {
				for _, value := range []string{"approve", "deny"} {
					var a acceptedRun
					r.ask("POST", "/agents/runs", `{"text":"`+text+`"}`, http.StatusAccepted, &a)
					r.until("it asks", func() bool { return r.run(a.Run).State == "AWAITING" })
					q := r.run(a.Run).Awaiting.Questions[0].ID
					path, body := "/questions/"+esc(q)+"/answer", `{"value":"`+value+`"}`
					if way == "run" {
						path, body = "/agents/runs/"+a.Run+"/answers", `{"answers":{"s2":"`+value+`"}}`
					}
					g := r.do("POST", path, body, "Authorization", "Bearer "+tokens[scope])
					var stored openQuestion
					r.ask("GET", "/questions/"+esc(q), "", http.StatusOK, &stored)
					if want := map[bool]int{true: http.StatusAccepted, false: http.StatusForbidden}[may[scope]]; g.code != want || (stored.Answer != nil) != may[scope] {
						t.Errorf("%s of %q by its %s with %s = %d %s, stored %+v", value, text, way, scope, g.code, g.body, stored.Answer)
					}
				}
			}
		}
	}
}
