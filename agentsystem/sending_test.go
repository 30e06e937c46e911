package agentsystem_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/send"
	"github.com/claybot/claybot/workspace"
	"github.com/claybot/claybot/workspace/local"
)

// calling is a reply that uses one tool with arguments.
func calling(name, args string) llmtest.Reply {
	return llmtest.Use(claybot.ToolCall{Name: name, Args: args})
}

// withWorkspace gives the agents of a rig the tools of package send, over a
// workspace in which write puts files.
func (r *rig) withWorkspace() (write func(name, content string)) {
	r.Helper()
	p := local.New(local.Config{Dir: filepath.Join(r.TempDir(), "workspaces")})
	w, err := p.Open(r.Context(), "agent/test", workspace.Spec{Network: workspace.Network{Mode: workspace.NetworkFull}})
	if err != nil {
		r.Fatal(err)
	}
	open := func(context.Context, tools.Env) (workspace.Workspace, error) { return w, nil }
	r.more = func(s *agentsystem.AgentSystem) []tools.Tool { return send.Tools(s.Output, open) }
	return func(name, content string) {
		if err := w.WriteFile(r.Context(), name, []byte(content)); err != nil {
			r.Fatal(err)
		}
	}
}

// results are the texts of the tool results.
func (r *rig) results() (all []string) {
	r.Helper()
	for _, rec := range r.records(ann) {
		if rec.Type == claybot.RecordTool {
			all = append(all, rec.Text)
		}
	}
	return all
}

func TestSendFile(t *testing.T) {
	long := strings.Repeat("word ", 230) // longer than a caption, shorter than two posts
	for _, tt := range []struct {
		name, args string
		want       []string // what people see before the answer
		result     string   // a part of what the model reads
	}{
		{"document", `{"path":"out/report.txt","caption":"here it is"}`, []string{"<document report.txt alpha> here it is"}, "report.txt (5 bytes) is on its way as a document"},
		{"picture", `{"path":"cat.png"}`, []string{"<photo cat.png \x89PNG\r\n\x1a\n…> "}, "as a photo"},
		{"picture as a document", `{"path":"cat.png","as":"document"}`, []string{"<document cat.png \x89PNG\r\n\x1a\n…> "}, "as a document"},
		{"no picture", `{"path":"out/report.txt","as":"photo"}`, []string{"<document report.txt alpha> "}, "as a document"},
		{"long caption", `{"path":"out/report.txt","caption":"` + long + `"}`, []string{"<document report.txt alpha> ", long[:600], strings.TrimSpace(long[600:])}, "on its way"},
		{"empty", `{"path":"empty"}`, nil, "the file is empty"},
		{"missing", `{"path":"none"}`, nil, "error: "},
		{"outside", `{"path":"../../secret"}`, nil, "error: "},
		{"neither", `{}`, nil, "give either path or fileId"},
		{"both", `{"path":"a","fileId":"b"}`, nil, "give either path or fileId"},
		{"odd as", `{"path":"cat.png","as":"hologram"}`, nil, "want document, photo or voice"},
		{"unknown file", `{"fileId":"abcdefghijklmnopqrstuvwx"}`, nil, "you have no file with the id"},
		{"no id", `{"fileId":"../x"}`, nil, "invalid file id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clouded(t, func(r *rig, _ *cloud) {
				write := r.withWorkspace()
				write("out/report.txt", "alpha")
				write("cat.png", "\x89PNG\r\n\x1a\n…")
				write("empty", "")
				r.mind.plan("go", calling("send_file", tt.args), llmtest.Say("done"))
				r.start()
				r.post(ann, msg("go", "go"))
				after(time.Minute)
				if got, want := r.chat.seen(), append(slices.Clone(tt.want), "done"); !slices.Equal(got, want) {
					t.Errorf("people see %q, want %q", got, want)
				}
				if got := r.results(); len(got) != 1 || !strings.Contains(got[0], tt.result) {
					t.Errorf("the model reads %q, want %q", got, tt.result)
				}
			})
		})
	}
}

// A file that a person sent can be sent back by its id.
func TestSendKeptFile(t *testing.T) {
	clouded(t, func(r *rig, c *cloud) {
		c.files["a"] = []byte("alpha")
		r.withWorkspace()
		f := from("a", "a.txt", claybot.FileDocument)
		r.mind.plan("go", calling("send_file", `{"fileId":"`+f.ID+`"}`), llmtest.Say("done"))
		r.start()
		r.post(ann, withFiles("go", "go", f))
		after(time.Minute)
		r.wants("<document a.txt alpha> ", "done")
	})
}

// Where files cannot go, nothing is kept and the model is told.
func TestSendFileNowhere(t *testing.T) {
	bubble(t, func(r *rig) {
		r.withWorkspace()("a.txt", "alpha")
		r.mind.plan("go", calling("send_file", `{"path":"a.txt"}`), calling("set_reaction", `{"emoji":"👍"}`), llmtest.Say("done"))
		r.start()
		r.post(ann, msg("go", "go"))
		after(time.Minute)
		r.wants("done")
		got := r.results()
		if len(got) != 2 || !strings.Contains(got[0], "no files can be sent to chat") || !strings.Contains(got[1], "no message of a person") {
			t.Errorf("the model reads %q", got)
		}
		if kept := r.keptFiles(); len(kept) != 0 {
			t.Errorf("kept %q", kept)
		}
	})
}

// The process dies at each step; people get the file once, before the answer.
func TestCrashWhileAFileGoes(t *testing.T) {
	carry := func(t *testing.T, k int) (steps int) {
		clouded(t, func(r *rig, c *cloud) {
			r.withWorkspace()("a.txt", "alpha")
			r.blowAfter = k
			m := msg("go", "go")
			m.Context.MessageID = "41"
			r.mind.plan("go", calling("set_reaction", `{"emoji":"👀"}`), calling("send_file", `{"path":"a.txt","caption":"here"}`), llmtest.Say("done"))
			say := func() {
				r.insist(ann, m)
				after(3 * time.Minute)
			}
			r.start()
			say()
			steps = len(r.fuse.steps)
			if k >= 0 {
				r.crash()
				r.start()
				say()
			}
			r.wants("<document a.txt alpha> here", "done")
			if got := r.keptFiles(); !slices.Equal(got, []string{"alpha"}) {
				t.Errorf("kept %q", got)
			}
			if len(c.put) == 0 || c.put[0] != "dm-ann 41 👀" {
				t.Errorf("reactions: %q", c.put)
			}
			r.checkEvents(ann)
		})
		return steps
	}
	steps := carry(t, -1)
	if steps < 12 {
		t.Fatalf("only %d steps: the test does not see them", steps)
	}
	for k := range steps {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			carry(t, k)
		})
	}
}

// A file whose fate is unknown is looked up and not sent twice; one that cannot
// be delivered is named to the person.
func TestDeliveryOfFiles(t *testing.T) {
	for _, tt := range []struct {
		name string
		will []verdict
		want []string
	}{
		{"arrived, unknown", []verdict{lost}, []string{"<document a.txt alpha> ", "done"}},
		{"cut", []verdict{cut}, []string{"<document a.txt alpha> ", "done"}},
		{"failing", []verdict{failing, failing}, []string{"<document a.txt alpha> ", "done"}},
		{"asked to wait", []verdict{slow(30*time.Second, false)}, []string{"<document a.txt alpha> ", "done"}},
		{"refused", []verdict{refused(false)}, []string{"I couldn't deliver the file “a.txt” here. /why shows what happened to your last message.", "done"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clouded(t, func(r *rig, _ *cloud) {
				r.withWorkspace()("a.txt", "alpha")
				r.mind.plan("go", calling("send_file", `{"path":"a.txt"}`), use("work"), llmtest.Say("done"))
				r.bench.work = func(ctx context.Context) { _ = rest(ctx, time.Second) }
				r.chat.will(tt.will...)
				r.start()
				r.post(ann, msg("go", "go"))
				after(5 * time.Minute)
				r.wants(tt.want...)
			})
		})
	}
	t.Run("deleted meanwhile", func(t *testing.T) {
		clouded(t, func(r *rig, _ *cloud) {
			r.withWorkspace()("a.txt", "alpha")
			r.mind.plan("go", calling("send_file", `{"path":"a.txt"}`), llmtest.Say("done"))
			r.chat.will(slow(time.Minute, false))
			r.start()
			r.post(ann, msg("go", "go"))
			after(10 * time.Second)
			gone, err := filepath.Glob(filepath.Join(r.dir, "agents", "*", "attachments", "*"))
			if err != nil || len(gone) != 2 {
				t.Fatalf("kept %q, %v", gone, err)
			}
			for _, path := range gone {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			after(5 * time.Minute)
			r.wants("done", "I couldn't deliver the file “a.txt” here. /why shows what happened to your last message.")
		})
	})
}

func TestReact(t *testing.T) {
	for _, tt := range []struct {
		name   string
		refuse []error
		want   string
		put    int
	}{
		{"set", nil, "set", 1},
		{"refused", []error{&connectors.RefusedError{Text: "this chat takes 👍 alone", Err: errors.New("400")}}, "error: this chat takes 👍 alone", 0},
		{"wait a little", []error{&connectors.RetryError{After: 3 * time.Second, Err: errors.New("429")}}, "set", 1},
		{"wait long", []error{&connectors.RetryError{After: time.Hour, Err: errors.New("429")}}, "error: the chat asks for a pause; the reaction was not set", 0},
		{"broken", []error{errors.New("connection reset by 10.0.0.1")}, "error: the reaction could not be set now", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clouded(t, func(r *rig, c *cloud) {
				r.withWorkspace()
				c.refuse = tt.refuse
				m := msg("go", "go")
				m.Context.MessageID = "41"
				r.mind.plan("go", calling("set_reaction", `{"emoji":"👍"}`), llmtest.Say("done"))
				r.start()
				r.post(ann, m)
				after(time.Minute)
				if got := r.results(); len(got) != 1 || got[0] != tt.want || len(c.put) != tt.put {
					t.Errorf("the model reads %q, %d set", got, len(c.put))
				}
			})
		})
	}
}
