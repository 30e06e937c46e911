package main

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
)

// told answers every call in the same way.
type told struct{ err error }

func (m *told) Chat(context.Context, llm.Request) (llm.Response, error) {
	return llm.Response{}, m.err
}

func TestModelHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := configs.Default()
		c.Model.Name = "common"
		own := configs.Model{Name: "own"}
		c.Agents.Profiles = map[string]configs.Profile{"default": {Model: c.Model}, "other": {Model: own}}
		first, second := &told{}, &told{}
		a, b := &watched{model: first}, &watched{model: second}
		m := models{}
		check := func(what string, want overview.ModelStatus) {
			t.Helper()
			if got := m.health(c); got != want {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
		}
		ask := func(w *watched, ctx context.Context, err error) {
			time.Sleep(time.Second)
			w.model.(*told).err = err
			if _, got := w.Chat(ctx, llm.Request{}); !errors.Is(got, err) {
				t.Errorf("the error %v became %v", err, got)
			}
		}
		check("before any call", overview.ModelStatus{Name: "common"})
		m.all = map[string]*watched{fingerprint(c.Model): a, fingerprint(own): b}
		ask(a, t.Context(), nil)
		worked := time.Now()
		check("after a success", overview.ModelStatus{Name: "common", LastOK: worked})
		key := &llm.Error{Class: llm.Permanent, Status: 401, Text: "the provider refuses the key; check OPENAI_API_KEY"}
		ask(b, t.Context(), key)
		check("another profile's key", overview.ModelStatus{Name: "own", Err: key.Text + " (HTTP 401)"})
		ask(a, t.Context(), &llm.Error{Class: llm.Transient, Text: "no connection"})
		check("the newest failure", overview.ModelStatus{Name: "common", LastOK: worked, Err: "no connection; the next message tries again"})
		ask(a, t.Context(), nil)
		worked = time.Now()
		ask(b, t.Context(), nil)
		check("all is well again", overview.ModelStatus{Name: "common", LastOK: worked})
		ask(a, t.Context(), &llm.Error{Class: llm.Context, Text: "too long"})
		stopped, stop := context.WithCancel(t.Context())
		stop()
		ask(a, stopped, &llm.Error{Class: llm.Transient, Text: "canceled"})
		ask(a, t.Context(), context.DeadlineExceeded)
		check("what says nothing about the model", overview.ModelStatus{Name: "common", LastOK: worked})
		ask(b, t.Context(), &llm.Error{Class: llm.Permanent, Text: "the account's quota is used up"})
		delete(c.Agents.Profiles, "other")
		check("a model that is configured no more", overview.ModelStatus{Name: "common", LastOK: worked})
	})
}
