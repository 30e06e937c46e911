package api_test

import (
	"net/http"
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
	// The body counts, and a header may have any form.
	third := post(messages, `{"text":"three","idempotencyKey":"k3"}`, "other")
	if again := post(messages, `{"text":"three","idempotencyKey":"k3"}`, ""); again != third {
		t.Errorf("%+v, want %+v", again, third)
	}
	r.ended(third.Run)
	quoted := post(messages, `{"text":"four"}`, `"8e03978e 40d5"`)
	if again := post(messages, `{"text":"four"}`, `"8e03978e 40d5"`); again != quoted || quoted.Run == third.Run {
		t.Errorf("%+v, want %+v", again, quoted)
	}
}
