package react_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/anthropic"
	"github.com/claybot/claybot/llm/anthropic/anthropictest"
	"github.com/claybot/claybot/llm/openai"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// A strict server is one that refuses answers which come back without what it gave with them.
type strictServer struct {
	model   llm.Model
	refused func() []string
	calls   func() int // that were accepted, which is what has to be paid for
}

// strictServers starts all of them. Each answers the scene of a run by how far the request has got.
func strictServers(t *testing.T) map[string]strictServer {
	t.Helper()
	all := make(map[string]strictServer)
	started := func(url string, stop func(), err error) string {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		return url
	}
	step := func(messages []llm.Message) llm.Response {
		n := 0
		for _, m := range messages {
			if m.Role == llm.RoleAssistant {
				n++
			}
		}
		return scene[n].Response
	}
	for _, p := range llm.Presets() {
		if p.API != llm.APIOpenAI {
			continue
		}
		d, name := openaitest.Dialect(p.Name), "m"
		switch p.Name {
		case "openai", "openai-responses":
			d = ""
		case "openrouter":
			name = "anthropic/m" // it is marked for the cache
		}
		s := openaitest.New(openaitest.Config{Key: "k", Dialect: d, Reply: func(r openaitest.Request) openaitest.Reply {
			a := step(r.Messages)
			return openaitest.Reply{Text: a.Text, Calls: a.Calls}
		}})
		base := started(s.Start())
		if p.Quirks.BasePath != "" {
			base = strings.TrimSuffix(base, "/v1") // it is added
		}
		all[p.Name] = strictServer{openai.New(openai.Config{BaseURL: base, Key: "k", Model: name, Quirks: &p.Quirks}), s.Refused, s.Calls}
	}
	s := anthropictest.New(anthropictest.Config{Thinks: true, Reply: func(r anthropictest.Request) anthropictest.Reply {
		a := step(r.Messages)
		return anthropictest.Reply{Text: a.Text, Calls: a.Calls}
	}})
	all["anthropic"] = strictServer{anthropic.New(anthropic.Config{BaseURL: started(s.Start()), Model: "m"}), s.Refused, s.Calls}
	return all
}

// A run goes on after a crash at every record with the emulator of each provider, those among them that want their reasoning
// back: it is in the records. An answer that was recorded is paid for once, and nothing is refused.
func TestStateAfterCrash(t *testing.T) {
	for name, s := range strictServers(t) {
		t.Run(name, func(t *testing.T) {
			var c counter
			for k := 1; k <= 12; k++ {
				for _, keep := range []bool{true, false} {
					set, before := c.set(t), s.calls()
					j := newJournal("go")
					err := j.pass(t.Context(), loop(s.model, set), j.turn(), k, keep)
					if err != nil && !errors.Is(err, errCrash) {
						t.Fatalf("k=%d: %v", k, err)
					}
					if err := j.run(t, loop(s.model, set)); err != nil {
						t.Fatalf("k=%d: %v", k, err)
					}
					if last := j.records[len(j.records)-1]; last.Type != claybot.RecordAssistant || last.Text != "all done" {
						t.Errorf("k=%d: the last record is %+v", k, last)
					}
					if n := s.calls() - before; n < len(scene) || n > len(scene)+1 || keep && n > len(scene) {
						t.Errorf("k=%d: %d answers for %d steps", k, n, len(scene))
					}
				}
			}
			if refused := s.refused(); len(refused) > 0 {
				t.Errorf("%d requests were refused, the first because %q", len(refused), refused[0])
			}
		})
	}
}
