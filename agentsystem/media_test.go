package agentsystem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/worker"
)

func (a fusedAgents) SaveFile(ctx context.Context, id claybot.AgentID, f claybot.FileReference, content io.Reader, limit int64) (kept claybot.FileReference, err error) {
	err = a.f.step("save file", func() error { kept, err = a.Agents.SaveFile(ctx, id, f, content, limit); return err })
	return kept, err
}

func (a fusedAgents) OpenFile(ctx context.Context, id claybot.AgentID, file string) (f claybot.FileReference, r io.ReadCloser, err error) {
	err = a.f.quiet(func() error { f, r, err = a.Agents.OpenFile(ctx, id, file); return err })
	return f, r, err
}

func (a fusedAgents) SentBytes(ctx context.Context, ids ...claybot.AgentID) (n int64, err error) {
	err = a.f.quiet(func() error { n, err = a.Agents.SentBytes(ctx, ids...); return err })
	return n, err
}

// A cloud is where a platform has its files, and what people react with. It
// outlives the processes.
type cloud struct {
	mu      sync.Mutex
	files   map[string][]byte
	errs    map[string][]error // of the next fetches of a source
	slow    time.Duration
	fetched []string
	put     []string
	refuse  []error  // of the next reactions
	heard   []string // the recordings that were transcribed
}

// A mediaLine has files and reactions.
type mediaLine struct {
	findingLine
	*cloud
}

func (l mediaLine) Fetch(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error) {
	if err := rest(ctx, l.slow); err != nil {
		return nil, err
	}
	l.cloud.mu.Lock()
	defer l.cloud.mu.Unlock()
	l.fetched = append(l.fetched, f.Source)
	if errs := l.errs[f.Source]; len(errs) > 0 {
		l.errs[f.Source] = errs[1:]
		return nil, errs[0]
	}
	data, ok := l.files[f.Source]
	if !ok {
		return nil, &connectors.RefusedError{Text: "it is gone"}
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// SendFile shows the bytes in the post, so that tests see them.
func (l mediaLine) SendFile(ctx context.Context, o claybot.Outgoing, open func() (io.ReadCloser, error)) (string, error) {
	r, err := open()
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		return "", err
	}
	o.Text = fmt.Sprintf("<%s %s %s> %s", o.File.Kind, o.File.Name, data, o.Text)
	return l.Send(ctx, o)
}

func (l mediaLine) React(ctx context.Context, r claybot.Route, message, emoji string) error {
	return l.fuse.step("react", func() error {
		l.cloud.mu.Lock()
		defer l.cloud.mu.Unlock()
		if len(l.refuse) > 0 {
			err := l.refuse[0]
			l.refuse = l.refuse[1:]
			return err
		}
		l.put = append(l.put, r.ChannelID+" "+message+" "+emoji)
		return nil
	})
}

// clouded is a rig whose chat has files.
func clouded(t *testing.T, test func(r *rig, c *cloud)) {
	bubble(t, func(r *rig) {
		c := &cloud{files: make(map[string][]byte), errs: make(map[string][]error)}
		r.line = func(l *line) connectors.Connector { return mediaLine{findingLine{l}, c} }
		test(r, c)
	})
}

// from is a file that the chat has.
func from(source, name string, kind claybot.FileKind) claybot.FileReference {
	return claybot.FileReference{ID: connectors.FileID("test", source), Source: source, Name: name, Kind: kind, MIMEType: "application/octet-stream"}
}

func withFiles(id, text string, files ...claybot.FileReference) claybot.AgentMessage {
	m := msg(id, text)
	m.Files = files
	return m
}

// userRecord is the record of a message.
func (r *rig) userRecord(id claybot.MessageID) claybot.Record {
	r.Helper()
	var found []claybot.Record
	for _, rec := range r.records(ann) {
		if rec.MessageID == id {
			found = append(found, rec)
		}
	}
	if len(found) != 1 {
		r.Fatalf("message %s has %d records", id, len(found))
	}
	return found[0]
}

// keptFiles are the contents of all files that agents have, sorted.
func (r *rig) keptFiles() []string {
	r.Helper()
	paths, err := filepath.Glob(filepath.Join(r.dir, "agents", "*", "attachments", "*"))
	if err != nil {
		r.Fatal(err)
	}
	all := []string{}
	for _, p := range paths {
		if strings.HasSuffix(p, ".json") {
			continue
		}
		data, err := os.ReadFile(p)
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, string(data))
	}
	slices.Sort(all)
	return all
}

var errFlaky = errors.New("connection reset")

// What comes with a message is there when the engine begins; what cannot be had
// is a line.
func TestFilesComeWithTheRun(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n…"
	clouded(t, func(r *rig, c *cloud) {
		c.files = map[string][]byte{"a": []byte("alpha"), "b": []byte(png), "f": []byte("flaky"), "z": {}, "e": []byte("<html><body>x</body></html>"), "w": []byte("wait")}
		c.errs["f"] = []error{errFlaky, errFlaky}
		c.errs["w"] = []error{&connectors.RetryError{After: 20 * time.Second, Err: errFlaky}}
		c.errs["n"] = slices.Repeat([]error{errFlaky}, 9)
		var opened []string
		r.engine = sayer(func(ctx context.Context, turn *runs.Turn) (string, error) {
			for _, f := range turn.Messages[0].Files {
				body, err := turn.Files.OpenFile(ctx, f)
				if err != nil {
					return "", err
				}
				data, err := io.ReadAll(body)
				if err := errors.Join(err, body.Close()); err != nil {
					return "", err
				}
				opened = append(opened, string(data))
			}
			return "seen", nil
		})
		r.start()
		large := from("l", "film.mp4", claybot.FileVideo)
		large.Size = worker.MaxFetch + 1
		bad := from("e", "cat.png", claybot.FilePhoto)
		bad.MIMEType = "image/png"
		r.post(ann, withFiles("m", "look",
			from("a", "a\u202e\n.txt", claybot.FileDocument), from("b", "b.bin", claybot.FilePhoto), large, from("gone", "[old]", claybot.FileDocument),
			from("f", "f.txt", claybot.FileDocument), from("z", "zero", claybot.FileDocument), from("n", "never", claybot.FileDocument), bad, from("w", "w", claybot.FileDocument)))
		after(2 * time.Minute)
		r.wants("seen")
		rec := r.userRecord("m")
		want := "look\n[video film.mp4, 21.0 MB: it is too large; the limit is 20 MiB]\n[document old: it is gone]\n" +
			"[document never: it could not be fetched now; please send it again later]"
		if rec.Text != want {
			t.Errorf("the model reads %q, want %q", rec.Text, want)
		}
		if got := []string{"alpha", png, "flaky", "", "<html><body>x</body></html>", "wait"}; !slices.Equal(opened, got) {
			t.Errorf("the engine reads %q", opened)
		}
		var types []string
		for _, f := range rec.Files {
			types = append(types, f.Name+" "+f.MIMEType)
			if f.Source != "" || f.Path == "" || f.SHA256 == "" {
				t.Errorf("not kept: %+v", f)
			}
		}
		if got := strings.Join(types, ", "); got != "a.txt text/plain, b.bin image/png, f.txt text/plain, zero text/plain, cat.png text/html, w text/plain" {
			t.Errorf("files: %s", got)
		}
		if slices.Contains(c.fetched, "l") {
			t.Error("a file that is too large was asked for")
		}
		r.post(ann, withFiles("again", "", from("a", "a.txt", claybot.FileDocument)))
		after(time.Minute)
		if n := len(slices.DeleteFunc(slices.Clone(c.fetched), func(s string) bool { return s != "a" })); n != 1 {
			t.Errorf("the same file was fetched %d times", n)
		}
	})
}

// A sayer is an engine that says one text.
type sayer func(ctx context.Context, t *runs.Turn) (string, error)

func (f sayer) Run(ctx context.Context, t *runs.Turn) iter.Seq2[claybot.Record, error] {
	return func(yield func(claybot.Record, error) bool) {
		text, err := f(ctx, t)
		yield(claybot.Record{Type: claybot.RecordAssistant, Text: text, Step: 1}, err)
	}
}

func TestFilesOfStrangersAreLeftAlone(t *testing.T) {
	clouded(t, func(r *rig, c *cloud) {
		c.files["a"] = []byte("alpha")
		r.access = people.Access{Mode: people.AccessPairing}
		r.start()
		r.post(ann, withFiles("m", "hi", from("a", "a.txt", claybot.FileDocument)))
		after(time.Minute)
		if len(c.fetched) != 0 || len(r.keptFiles()) != 0 {
			t.Errorf("fetched %q, kept %q", c.fetched, r.keptFiles())
		}
	})
}

func TestManyFiles(t *testing.T) {
	clouded(t, func(r *rig, c *cloud) {
		var files []claybot.FileReference
		for i := range inbox.MaxFiles + 2 {
			source := fmt.Sprint("s", i)
			c.files[source] = []byte(source)
			files = append(files, from(source, source, claybot.FileDocument))
		}
		r.start()
		r.post(ann, withFiles("m", "", files...))
		after(time.Minute)
		rec := r.userRecord("m")
		if len(rec.Files) != inbox.MaxFiles || rec.Text != "[2 more files: at most 10 of one message are read]" {
			t.Errorf("%d files, %q", len(rec.Files), rec.Text)
		}
	})
}

func TestVoice(t *testing.T) {
	voice := from("v", "voice.ogg", claybot.FileVoice)
	voice.Seconds = 72
	type hearing func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error)
	heard := func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error) {
		body, err := open()
		if err != nil {
			return llm.Speech{}, err
		}
		data, err := io.ReadAll(body)
		return llm.Speech{Text: strings.ToUpper(string(data)) + "\x00"}, errors.Join(err, body.Close())
	}
	for _, tt := range []struct {
		name       string
		transcribe hearing
		want       string
	}{
		{"heard", heard, "[voice message, 1:12] HELLO"},
		{"no recognition", nil, "[voice message, 1:12: it cannot be heard here, as no speech recognition is set up; the operator can do that with the key transcription]"},
		{"fails", func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
			return llm.Speech{}, errors.New("500 secret")
		}, "[voice message, 1:12: the speech recognition failed, so its content is unknown]"},
		{"breaks", func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
			panic("broken")
		}, "[voice message, 1:12: the speech recognition failed, so its content is unknown]"},
		{"no money", func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
			return llm.Speech{}, &llm.LimitError{Text: "Your budget must hold."}
		}, "[voice message, 1:12: it was not heard. Your budget must hold.]"},
		{"silence", func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
			return llm.Speech{Text: " \n"}, nil
		}, "[voice message, 1:12: no words in it]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clouded(t, func(r *rig, c *cloud) {
				c.files["v"], r.transcribe = []byte("hello"), tt.transcribe
				r.start()
				r.post(ann, withFiles("m", "", voice))
				after(time.Minute)
				rec := r.userRecord("m")
				if rec.Text != tt.want || len(rec.Files) != 1 || rec.Files[0].Kind != claybot.FileVoice {
					t.Errorf("got %q and %d files", rec.Text, len(rec.Files))
				}
			})
		})
	}
}

// A shutdown in the middle leaves the files to the next start; a person who
// stops the run gets a record that says what is missing.
func TestFetchIsCutOff(t *testing.T) {
	t.Run("shutdown", func(t *testing.T) {
		clouded(t, func(r *rig, c *cloud) {
			c.files["a"], c.slow, r.grace = []byte("alpha"), 40*time.Second, time.Second
			r.start()
			r.post(ann, withFiles("m", "look", from("a", "a.txt", claybot.FileDocument)))
			after(5 * time.Second)
			c.slow = 0
			r.restart()
			after(time.Minute)
			if rec := r.userRecord("m"); rec.Text != "look" || len(rec.Files) != 1 || len(r.chat.seen()) != 1 {
				t.Errorf("got %q, %d files; people see %q", rec.Text, len(rec.Files), r.chat.seen())
			}
		})
	})
	t.Run("stop", func(t *testing.T) {
		clouded(t, func(r *rig, c *cloud) {
			c.files["a"], c.slow = []byte("alpha"), 40*time.Second
			r.start()
			r.post(ann, withFiles("m", "look", from("a", "a.txt", claybot.FileDocument)))
			after(5 * time.Second)
			r.post(ann, typed("s", claybot.MessageCancel, ""))
			after(10 * time.Second)
			if rec := r.userRecord("m"); rec.Text != "look\n[document a.txt: the run was stopped before it was fetched]" || len(rec.Files) != 0 {
				t.Errorf("got %q, %d files", rec.Text, len(rec.Files))
			}
			if rec := r.receipt("m"); rec.Run == nil || rec.Run.State != claybot.RunCanceled {
				t.Errorf("the run: %+v", rec.Run)
			}
		})
	})
}

// The process dies at each step that a file takes; in the end it is kept once
// and stands in one record.
func TestCrashWhileFilesCome(t *testing.T) {
	bring := func(t *testing.T, k int) (steps int) {
		clouded(t, func(r *rig, c *cloud) {
			c.files["a"], c.files["v"] = []byte("alpha"), []byte("hello")
			c.errs["a"] = []error{errFlaky}
			r.transcribe = func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
				return llm.Speech{Text: "hello"}, nil
			}
			r.blowAfter = k
			m := withFiles("m", "look", from("a", "a.txt", claybot.FileDocument), from("v", "v.ogg", claybot.FileVoice))
			say := func() {
				r.insist(ann, m)
				after(time.Minute)
			}
			r.start()
			say()
			steps = len(r.fuse.steps)
			if k >= 0 {
				r.crash()
				r.start()
				say()
			}
			rec := r.userRecord("m")
			if rec.Text != "look\n[voice message] hello" || len(rec.Files) != 2 {
				t.Errorf("recorded %q, %d files", rec.Text, len(rec.Files))
			}
			if got := r.keptFiles(); !slices.Equal(got, []string{"alpha", "hello"}) {
				t.Errorf("kept %q", got)
			}
			if n := len(r.chat.seen()); n != 1 {
				t.Errorf("people see %d answers", n)
			}
			r.checkEvents(ann)
		})
		return steps
	}
	steps := bring(t, -1)
	if steps < 8 {
		t.Fatalf("only %d steps: the test does not see them", steps)
	}
	for k := range steps {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			t.Parallel()
			bring(t, k)
		})
	}
}

// Files of messages that join a run at work come as well.
func TestFilesOfInjectedMessages(t *testing.T) {
	clouded(t, func(r *rig, c *cloud) {
		r.profile.Policy = inject
		c.files["a"] = []byte("alpha")
		r.mind.plan("begin", use("work"), llmtest.Say("done"))
		r.bench.work = restALittle
		r.start()
		r.post(ann, msg("begin", "begin"))
		synctest.Wait()
		r.post(ann, withFiles("m", "more", from("a", "a.txt", claybot.FileDocument)))
		after(time.Minute)
		if rec := r.userRecord("m"); len(rec.Files) != 1 || rec.Files[0].Source != "" {
			t.Errorf("got %+v", rec.Files)
		}
		if !r.sameRun("begin", "m") {
			t.Error("the message did not join the run")
		}
	})
}
