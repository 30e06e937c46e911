package api_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// attachments counts the files that are kept for an agent, references included.
func (r *rig) attachments(agent string) int {
	r.Helper()
	all, err := filepath.Glob(filepath.Join(r.dir, "agents", agent, "attachments", "*"))
	if err != nil {
		r.Fatal(err)
	}
	return len(all)
}

// agentCount counts all agents.
func (r *rig) agentCount() int {
	r.Helper()
	all, err := os.ReadDir(filepath.Join(r.dir, "agents"))
	if err != nil {
		r.Fatal(err)
	}
	return len(all)
}

func inline(content string) string {
	return `{"name":"n.txt","data":"` + base64.StdEncoding.EncodeToString([]byte(content)) + `"}`
}

// A key stands for one message to one agent. What comes again under it keeps no
// second copy of its files, and another message under it is refused and not
// taken for the first one.
func TestAKeyIsOfOneMessage(t *testing.T) {
	r := start(t)
	var first, other acceptedRun
	body := `{"text":"read","idempotencyKey":"k","descriptor":{"channelId":"c"},"files":[` + inline("one") + `]}`
	r.ask("POST", "/agents/runs", body, http.StatusAccepted, &first)
	r.ask("POST", "/agents/runs", `{"text":"hello","idempotencyKey":"other","descriptor":{"channelId":"d"}}`, http.StatusAccepted, &other)
	r.ended(first.Run)
	agents := r.agentCount()
	for range 3 {
		var again acceptedRun
		r.ask("POST", "/agents/runs", body, http.StatusAccepted, &again)
		if again.Run != first.Run || again.Agent != first.Agent || again.Message != first.Message {
			t.Errorf("%+v, want %+v", again, first)
		}
	}
	var byAgent acceptedRun // the same one, otherwise named
	r.ask("POST", "/agents/"+first.Agent+"/messages", `{"text":"read","idempotencyKey":"k","files":[`+inline("one")+`]}`, http.StatusAccepted, &byAgent)
	if byAgent.Run != first.Run {
		t.Errorf("%+v, want %+v", byAgent, first)
	}
	for _, tc := range []struct{ path, body string }{
		{"/agents/runs", `{"text":"read it","idempotencyKey":"k","descriptor":{"channelId":"c"},"files":[` + inline("one") + `]}`},
		{"/agents/runs", `{"text":"read","idempotencyKey":"k","descriptor":{"channelId":"c"},"files":[` + inline("two") + `]}`},
		{"/agents/runs", `{"text":"read","idempotencyKey":"k","descriptor":{"channelId":"c"},"files":[` + inline("one") + "," + inline("one") + `]}`},
		{"/agents/runs", `{"text":"read","idempotencyKey":"k","descriptor":{"channelId":"c"}}`},
		{"/agents/runs", `{"text":"read","idempotencyKey":"k","descriptor":{"channelId":"d"},"files":[` + inline("one") + `]}`},
		{"/agents/runs", `{"text":"read","idempotencyKey":"k","descriptor":{"channelId":"new"},"files":[` + inline("one") + `]}`},
		{"/agents/runs", `{"text":"read","idempotencyKey":"k","files":[` + inline("one") + `]}`},
		{"/agents/runs", `{"text":"read","idempotencyKey":"k","agentId":"` + other.Agent + `","files":[` + inline("one") + `]}`},
		{"/agents/" + other.Agent + "/messages", `{"text":"read","idempotencyKey":"k","files":[` + inline("one") + `]}`},
	} {
		r.refused("POST", tc.path, tc.body, http.StatusConflict, "key_used", "another message")
	}
	if n, m := r.attachments(first.Agent), r.attachments(other.Agent); n != 2 || m != 0 {
		t.Errorf("%d and %d files are kept", n, m)
	}
	if n := r.agentCount(); n != agents {
		t.Errorf("%d agents, were %d", n, agents)
	}
	if n := r.runs(); n != 2 {
		t.Errorf("%d runs", n)
	}
	// What was said to an agent stays said, also when it is gone.
	r.do("DELETE", "/agents/"+first.Agent, "")
	var again acceptedRun
	r.ask("POST", "/agents/runs", body, http.StatusAccepted, &again)
	if again.Run != first.Run || again.Agent != first.Agent {
		t.Errorf("after the agent is deleted: %+v, want %+v", again, first)
	}
}

// What a program sends in files is untrusted content, on every path; its text is not.
func TestFilesFromProgramsTaintTheRun(t *testing.T) {
	const content = `"content":[{"type":"%s","text":"read"},{"type":"%s",%s"filename":"n.pdf","file_data":"JVBERi0xLjQg4uMgL1R5cGUgL1BhZ2Ug"%s}]`
	for _, tt := range []struct {
		name, path, body string
		status, want     int // want: how many records are marked
	}{
		{"a run", "/agents/runs", `{"text":"read","files":[` + inline("one") + `]}`, 202, 1},
		{"a run without files", "/agents/runs", `{"text":"read"}`, 202, 0},
		{"a completion", "/v1/chat/completions", `{"model":"claybot","messages":[{"role":"user",` + fmt.Sprintf(content, "text", "file", `"file":{`, "}") + `}]}`, 200, 1},
		{"a completion without files", "/v1/chat/completions", `{"model":"claybot","messages":[{"role":"user","content":"read"}]}`, 200, 0},
		{"a response", "/v1/responses", `{"model":"claybot","input":[{"role":"user",` + fmt.Sprintf(content, "input_text", "input_file", "", "") + `}]}`, 200, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := start(t)
			r.ask("POST", tt.path, tt.body, tt.status, nil)
			r.until("the message is in a history", func() bool { return strings.Contains(r.histories(), `"user_message"`) })
			if said := r.histories(); strings.Count(said, `"tainted":true`) != tt.want {
				t.Errorf("want %d marks in %s", tt.want, said)
			}
		})
	}
}

// histories are those of all agents.
func (r *rig) histories() string {
	r.Helper()
	all, err := filepath.Glob(filepath.Join(r.dir, "agents", "*", "history.jsonl"))
	if err != nil {
		r.Fatal(err)
	}
	var b strings.Builder
	for _, name := range all {
		data, err := os.ReadFile(name)
		if err != nil {
			r.Fatal(err)
		}
		b.Write(data)
	}
	return b.String()
}

// A start that is refused leaves no files behind.
func TestRefusedStartKeepsNoFiles(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	for _, tc := range []struct {
		body   string
		status int
	}{
		{`{"text":"x","agentId":"` + a.Agent + `","files":[` + inline("one") + `,{"id":"nothing"}]}`, 400},
		{`{"text":"x","agentId":"` + a.Agent + `","files":[` + inline("one") + `,{}]}`, 400},
		{`{"text":"x","agentId":"` + a.Agent + `","idempotencyKey":"a b","files":[` + inline("one") + `]}`, 400},
		{`{"text":"x","agentId":"nobody","files":[` + inline("one") + `]}`, 404},
	} {
		if g := r.do("POST", "/agents/runs", tc.body); g.code != tc.status {
			t.Errorf("%s = %d %s", tc.body, g.code, g.body)
		}
	}
	if n := r.attachments(a.Agent); n != 0 {
		t.Errorf("%d files are kept", n)
	}
}

// Of several messages that come under one key at once, one is taken; who sent
// another one is told.
func TestOneOfManyUnderAKey(t *testing.T) {
	r := start(t)
	const tries = 8
	taken := make([]acceptedRun, tries)
	var wg sync.WaitGroup
	for i := range tries {
		wg.Go(func() {
			g := r.do("POST", "/agents/runs", fmt.Sprintf(`{"text":"n%d","idempotencyKey":"k","descriptor":{"channelId":"c%d"}}`, i, i%2))
			var e struct{ Error struct{ Code string } }
			switch {
			case g.code == http.StatusAccepted:
				r.read(g.body, &taken[i])
			case json.Unmarshal([]byte(g.body), &e) != nil || g.code != http.StatusConflict || e.Error.Code != "key_used":
				t.Errorf("%d %s", g.code, g.body)
			}
		})
	}
	wg.Wait()
	n := 0
	for _, a := range taken {
		if a.Run != "" {
			n++
			r.ended(a.Run)
		}
	}
	if runs := r.runs(); n != 1 || runs != 1 {
		t.Errorf("%d were taken and made %d runs", n, runs)
	}
}

// A completion under a key that was used for another text is refused, too.
func TestCompletionUnderAUsedKey(t *testing.T) {
	r := start(t)
	if got := r.completed("t", "k", "hello"); got != "re: hello" {
		t.Errorf("got %q", got)
	}
	g := r.do("POST", "/v1/chat/completions", `{"model":"claybot","user":"t","messages":[{"role":"user","content":"something else"}]}`, "Idempotency-Key", "k")
	var e struct{ Error struct{ Code string } }
	if r.read(g.body, &e); g.code != http.StatusConflict || e.Error.Code != "key_used" {
		t.Errorf("%d %s", g.code, g.body)
	}
}
