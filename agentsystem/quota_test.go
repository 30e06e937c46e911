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
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/subagents"
)

// leftOut is the notice about a file of five bytes in a quota of twelve.
const leftOut = "I've left out document %s, because the files that you sent me take up the 12 bytes that they may take. An operator can raise `limits.files_per_owner`, or delete agents that you no longer need with `claybot agents delete`."

// TestFilesPerOwner: the files of a person count together, in all their chats and under all
// their names, also after a restart. What exceeds the quota is left out of a message that runs,
// and the person and the model are told so.
func TestFilesPerOwner(t *testing.T) {
	clouded(t, func(r *rig, c *cloud) {
		r.filesPerOwner = 12
		r.society = subagents.DefaultLimits
		r.society.Identities = func(owner string) []string {
			if owner == "chat/ann" || owner == "chat/anna" {
				return []string{"chat/ann", "chat/anna"}
			}
			return nil
		}
		c.files = map[string][]byte{"a": []byte("alpha"), "b": []byte("bravo"), "c": []byte("gamma"), "d": []byte("de"), "e": []byte("empty")}
		r.start()
		elsewhere := claybot.User("chat", "other", "anna")
		r.post(ann, withFiles("a", "one", from("a", "a.txt", claybot.FileDocument)))
		r.post(elsewhere, withFiles("b", "two", from("b", "b.txt", claybot.FileDocument)))
		after(time.Minute)
		r.restart()
		big := from("c", "c.txt", claybot.FileDocument)
		r.post(ann, withFiles("c", "three", big, from("d", "d.txt", claybot.FileDocument)))
		after(time.Minute)
		rec := r.userRecord("c")
		const line = "three\n[document c.txt: it was not stored, because the files of this person take up the 12 bytes that they may take; the person was told so]"
		if rec.Text != line || len(rec.Files) != 1 || rec.Files[0].Name != "d.txt" {
			t.Errorf("got %q and %+v", rec.Text, rec.Files)
		}
		big.Size = 5 // now the platform says it, and the quota is used up
		r.post(ann, withFiles("e", "", big))
		r.post(claybot.User("chat", "bob", "bob"), withFiles("bob", "five", from("e", "e.txt", claybot.FileDocument)))
		after(time.Minute)
		if kept := strings.Join(r.keptFiles(), " "); kept != "alpha bravo de empty" {
			t.Errorf("kept %q", kept)
		}
		posts := strings.Join(r.chat.seen(), "\n")
		if n := strings.Count(posts, strings.Replace(leftOut, "%s", "c.txt", 1)); n != 1 {
			t.Errorf("the notice came %d times in %s", n, posts)
		}
		if !strings.Contains(posts, strings.Replace(leftOut, "%s", "c.txt, 5 bytes", 1)) || strings.Count(posts, "re: ") != 5 {
			t.Errorf("want a notice for each message, and an answer: %s", posts)
		}
	})
}

// TestFilesPerOwnerUploads: what is uploaded for a person counts in their quota as well, and
// what tools store does not.
func TestFilesPerOwnerUploads(t *testing.T) {
	clouded(t, func(r *rig, _ *cloud) {
		r.filesPerOwner = 12
		r.start()
		r.say("hello")
		after(time.Minute)
		ctx, to := context.Background(), agentsystem.Address{Agent: r.agent(ann)}
		save := func(f claybot.FileReference, text string) error {
			_, err := r.system.Control.SaveFile(ctx, to, f, strings.NewReader(text))
			return err
		}
		for range 3 {
			if err := save(claybot.FileReference{Name: "screen.png"}, "a long picture"); err != nil {
				t.Fatal(err)
			}
		}
		if err := save(claybot.FileReference{Name: "a", Sent: true}, "eight by"); err != nil {
			t.Fatal(err)
		}
		if _, err := r.system.Control.Attach(ctx, ann, claybot.FileReference{Name: "b"}, strings.NewReader("five!")); !errors.Is(err, storage.ErrQuota) {
			t.Errorf("got %v, want %v", err, storage.ErrQuota)
		}
		if _, err := r.system.Control.Attach(ctx, ann, claybot.FileReference{Name: "b"}, strings.NewReader("four")); err != nil {
			t.Errorf("a file that fits: %v", err)
		}
		if err := save(claybot.FileReference{Name: "c", Sent: true}, "x"); !errors.Is(err, storage.ErrQuota) {
			t.Errorf("got %v, want %v", err, storage.ErrQuota)
		}
	})
}

// TestFilesPerOwnerUnusableAgent: an agent that cannot be used holds up no file for another
// agent of its owner, and no upload there.
func TestFilesPerOwnerUnusableAgent(t *testing.T) {
	clouded(t, func(r *rig, c *cloud) {
		r.filesPerOwner = 12
		c.files = map[string][]byte{"a": []byte("alpha"), "b": []byte("bravo")}
		r.start()
		sick := claybot.User("chat", "other", "ann")
		r.post(sick, withFiles("a", "one", from("a", "a.txt", claybot.FileDocument)))
		after(time.Minute)
		path := filepath.Join(r.dir, "agents", string(r.agent(sick)), "state.json")
		if err := os.WriteFile(path, []byte(`{"v":3}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r.restart()
		r.post(ann, withFiles("b", "two", from("b", "b.txt", claybot.FileDocument)))
		after(time.Minute)
		if rec := r.userRecord("b"); rec.Text != "two" || len(rec.Files) != 1 {
			t.Errorf("got %q and %+v", rec.Text, rec.Files)
		}
		if _, err := r.system.Control.Attach(context.Background(), ann, claybot.FileReference{Name: "c"}, strings.NewReader("four")); err != nil {
			t.Error(err)
		}
	})
}

// TestFilesOfAMessage: of the files of one message all are stored or none, and a retry stores
// nothing more.
func TestFilesOfAMessage(t *testing.T) {
	clouded(t, func(r *rig, _ *cloud) {
		r.filesPerOwner = 12
		r.start()
		r.say("hello")
		after(time.Minute)
		ctx, to := context.Background(), agentsystem.Address{Agent: r.agent(ann)}
		file := func(name, text string) agentsystem.SentFile {
			return agentsystem.SentFile{Name: name, MIMEType: "text/plain", Content: []byte(text)}
		}
		if _, err := r.system.Control.SaveFiles(ctx, to, []agentsystem.SentFile{file("a", "seven b"), file("b", "seven c")}); !errors.Is(err, storage.ErrQuota) {
			t.Errorf("got %v, want %v", err, storage.ErrQuota)
		}
		if kept := r.keptFiles(); len(kept) != 0 {
			t.Errorf("kept %q", kept)
		}
		var first []claybot.FileReference
		for range 3 {
			kept, err := r.system.Control.SaveFiles(ctx, to, []agentsystem.SentFile{file("a", "seven b"), file("b", "five!")})
			if err != nil || len(kept) != 2 || kept[0].Size != 7 || kept[1].Name != "b" || !kept[1].Sent {
				t.Fatalf("got %+v, %v", kept, err)
			}
			if first == nil {
				first = kept
			}
			if !slices.Equal(kept, first) {
				t.Errorf("got %+v, want %+v", kept, first)
			}
		}
		if kept := strings.Join(r.keptFiles(), " "); kept != "seven b five!" && kept != "five! seven b" {
			t.Errorf("kept %q", kept)
		}
		if _, err := r.system.Control.SaveFiles(ctx, to, []agentsystem.SentFile{file("another", "seven b")}); !errors.Is(err, storage.ErrQuota) {
			t.Errorf("another name: got %v, want %v", err, storage.ErrQuota)
		}
	})
}

// TestFilesPerOwnerCrash: wherever the process dies, nothing is counted twice, and the person
// reads one notice and one answer.
func TestFilesPerOwnerCrash(t *testing.T) {
	bring := func(t *testing.T, k int) (steps int) {
		clouded(t, func(r *rig, c *cloud) {
			r.filesPerOwner, r.blowAfter = 7, k
			c.files = map[string][]byte{"a": []byte("alpha"), "b": []byte("bravo")}
			m := withFiles("m", "look", from("a", "a.txt", claybot.FileDocument), from("b", "b.txt", claybot.FileDocument))
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
			if kept := strings.Join(r.keptFiles(), " "); kept != "alpha" || len(rec.Files) != 1 || !strings.Contains(rec.Text, "document b.txt: it was not stored") {
				t.Errorf("kept %q, record %q with %+v", kept, rec.Text, rec.Files)
			}
			if n, err := r.agents.SentBytes(r.Context(), r.agent(ann)); n != 5 || err != nil {
				t.Errorf("%d bytes count, %v", n, err)
			}
			if seen := r.chat.seen(); len(seen) != 2 {
				t.Errorf("people see %q", seen)
			}
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
