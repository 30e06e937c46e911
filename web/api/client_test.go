package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/client"
	"github.com/claybot/claybot/llm/llmtest"
)

// The Go client asks an agent, which remembers by thread, over a restart of the daemon; a repeated key is one run,
// and refusals are told.
func TestGoClient(t *testing.T) {
	r := start(t)
	c := client.New("http://"+r.addr+"/", r.token, nil)
	t.Cleanup(c.Close)
	out, err := c.Ask(t.Context(), client.Message{Thread: "main", Text: "hello", Key: "k1"})
	if err != nil || out.State != claybot.RunSucceeded || out.Text != "re: hello" || out.Usage.Input == 0 {
		t.Fatalf("%+v, %v", out, err)
	}
	again, err := c.Start(t.Context(), client.Message{Thread: "main", Text: "hello", Key: "k1"})
	if err != nil || again.Run != out.Run {
		t.Errorf("the same key: %+v, %v, want run %s", again, err, out.Run)
	}
	var refused *client.Error
	if _, err = c.Start(t.Context(), client.Message{Thread: "main", Text: "another", Key: "k1"}); !errors.As(err, &refused) || refused.Status != http.StatusConflict || refused.Code != "key_used" {
		t.Errorf("another message with the key: %v", err)
	}
	for _, err = range c.Follow(t.Context(), out.Run, 1<<20) {
		t.Errorf("behind the end: %v", err)
	}
	for _, err = range c.Follow(t.Context(), "nowhere", 0) {
		if !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
			t.Errorf("a run that does not exist: %v", err)
		}
	}
	if err = client.New("http://"+r.addr, "wrong", nil).Call(t.Context(), "GET", "/status", nil, nil); !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized || refused.Fix == "" {
		t.Errorf("a wrong token: %v", err)
	}
	r.mind.plan("fails", llmtest.Reply{Err: errors.New("the account is closed")})
	if out, err = c.Ask(t.Context(), client.Message{Text: "fails"}); err != nil || out.State != claybot.RunFailed || out.Error == nil {
		t.Errorf("a run that fails: %+v, %v", out, err)
	}
}

func TestGoClientOverARestart(t *testing.T) {
	r := start(t)
	c, err := client.Dial(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	letGo := r.mind.hold("slow", false)
	s, err := c.Start(t.Context(), client.Message{Text: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seqs []int64
	restarted := false
	for e, err := range c.Follow(ctx, s.Run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > 0 {
			seqs = append(seqs, e.Seq)
		}
		if e.Seq > 0 && !restarted {
			restarted = true
			r.restart()
			letGo()
		}
	}
	for i, n := range seqs {
		if n != int64(i+1) {
			t.Fatalf("events %v", seqs)
		}
	}
	if out, err := c.Output(t.Context(), s.Run); err != nil || fmt.Sprint(out.State, out.Text) != "SUCCEEDEDre: slow" {
		t.Errorf("%+v, %v", out, err)
	}
}
