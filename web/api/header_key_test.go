package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// The header Idempotency-Key is the same as the field idempotencyKey; both together must
// agree.
func TestKeyInTheHeader(t *testing.T) {
	r := start(t)
	post := func(path, body, key string) acceptedRun {
		t.Helper()
		g := r.do("POST", path, body, "Idempotency-Key", key)
		if g.code != http.StatusAccepted {
			t.Fatalf("%s %s: %d %s", path, body, g.code, g.body)
		}
		var a acceptedRun
		r.read(g.body, &a)
		a.State = "" // of that moment
		return a
	}
	first := post("/agents/runs", `{"text":"one"}`, "k1")
	for _, again := range []acceptedRun{
		post("/agents/runs", `{"text":"one"}`, "k1"),
		post("/agents/runs", `{"text":"one","idempotencyKey":"k1"}`, "k1"),
		post("/agents/runs", `{"text":"one","idempotencyKey":"k1"}`, ""),
	} {
		if again != first {
			t.Errorf("%+v, want %+v", again, first)
		}
	}
	r.ended(first.Run)
	messages := "/agents/" + first.Agent + "/messages"
	second := post(messages, `{"text":"two"}`, "k2")
	if again := post(messages, `{"text":"two"}`, "k2"); again != second || second.Run == first.Run {
		t.Errorf("%+v, want %+v", again, second)
	}
	r.ended(second.Run)
	if n := r.runs(); n != 2 {
		t.Errorf("%d runs, want 2", n)
	}
	for _, path := range []string{"/agents/runs", messages} {
		for key, want := range map[string]string{"other": "differ", "no key": "must be 1 to 128 letters"} {
			body := `{"text":"three","idempotencyKey":"k3"}`
			if key == "no key" {
				body = `{"text":"three"}`
			}
			if g := r.do("POST", path, body, "Idempotency-Key", key); g.code != http.StatusBadRequest || !strings.Contains(g.body, want) {
				t.Errorf("%s with %q: %d %s", path, key, g.code, g.body)
			}
		}
	}
}
