package api_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var guidePath = regexp.MustCompile("`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)")

// docs/api.md names every path of the document, and none that is not there.
func TestGuideNamesThePaths(t *testing.T) {
	r := start(t)
	guide, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for _, m := range guidePath.FindAllStringSubmatch(string(guide), -1) {
		if strings.HasPrefix(m[2], "/chat/") { // of the web chat, see package webchat
			continue
		}
		named[m[1]+" "+m[2]] = true
		if _, ok := r.doc.Paths[m[2]][strings.ToLower(m[1])]; !ok && !strings.Contains(m[2], "%2F") {
			t.Errorf("the guide names %s %s, which is not there", m[1], m[2])
		}
	}
	for path, methods := range r.doc.Paths {
		for method := range methods {
			if !named[strings.ToUpper(method)+" "+path] && path != "/agents/{agent}/config" {
				t.Errorf("the guide does not name %s %s", strings.ToUpper(method), path)
			}
		}
	}
}
