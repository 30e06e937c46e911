package api_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Every operation needs its scope, and a stranger gets nothing of any.
func TestScopes(t *testing.T) {
	r := start(t)
	tokens := map[string]string{"": "", "read": r.scoped("r", "read"), "operate": r.scoped("o", "operate"), "admin": r.token}
	rank := map[string]int{"": 0, "read": 1, "operate": 2, "admin": 3}
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
