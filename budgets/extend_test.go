package budgets_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/storage"
)

// A call that waits for room continues as soon as its budget is extended.
func TestExtensionWakesWaitingCalls(t *testing.T) {
	bubble(t, func(r *rig) {
		limiter := r.limiter(alone(), r.db, allTokens(1000))
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		if _, err := limiter.Reserve(ctx, llm.Charge{Tokens: 600}); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := limiter.Reserve(ctx, llm.Charge{Tokens: 600})
			done <- err
		}()
		synctest.Wait()
		if len(done) > 0 {
			t.Fatalf("the call does not wait: %v", <-done)
		}
		b, err := limiter.Extend(ctx, storage.Extension{ID: "x1", Key: "all/-/always/tokens", By: 600, Who: "operator"})
		if err != nil || b.Extension != 600 || b.Limit != 1000 {
			t.Fatalf("%+v, %v", b, err)
		}
		if err := <-done; err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// A person who is not named as an operator never decides about their own budget; the
// person at the operator's page does.
func TestDeciders(t *testing.T) {
	bubble(t, func(r *rig) {
		r.identities = []string{"chat/ann", "mail/ann"}
		ann := claybot.User("chat", "dm-ann", "ann")
		for _, tt := range []struct {
			operators []string
			who       claybot.Descriptor
			want      string
			own, only bool
		}{
			{nil, ann, "web/operator terminal/operator", false, false},
			{nil, claybot.User("web", "main", "operator"), "web/operator terminal/operator", true, true},
			{nil, claybot.User("chat", "x", "operator"), "web/operator terminal/operator", false, false},
			{nil, claybot.Descriptor{Type: claybot.AgentCron, UID: "u"}, "web/operator terminal/operator", false, false},
			{[]string{"chat/bob"}, ann, "chat/bob", false, false},
			{[]string{"chat/bob", "mail/ann"}, ann, "chat/bob mail/ann", true, false},
			{[]string{"chat/ann", "mail/ann"}, ann, "chat/ann mail/ann", true, true},
			{[]string{"chat/bob"}, claybot.User("terminal", "main", "operator"), "chat/bob terminal/operator", true, false},
		} {
			r.operators = tt.operators
			got, own, only := r.limiter(alone(), r.db).Deciders(claybot.Agent{Descriptor: tt.who})
			if strings.Join(got, " ") != tt.want || own != tt.own || only != tt.only {
				t.Errorf("operators %v for %+v: got %v, %v, %v, want %+v", tt.operators, tt.who, got, own, only, tt)
			}
		}
	})
}
