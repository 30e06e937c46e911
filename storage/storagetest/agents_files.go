package storagetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func attachments(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("web", "main", "1")))(t)
	b := try(u.AgentFor(ctx, claybot.User("web", "main", "2")))(t)
	text := try(u.SaveFile(ctx, a.ID, claybot.FileReference{Name: "../notes.txt", MIMEType: "text/plain"}, strings.NewReader("hello"), 100))(t)
	if text.Name != "notes.txt" || text.Size != 5 || text.Text != "hello" || text.ID == "" || text.MIMEType != "text/plain" ||
		text.SHA256 != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Errorf("got %+v", text)
	}
	raw := []byte{0, 1, 2, 0xff}
	blob := try(u.SaveFile(ctx, a.ID, claybot.FileReference{Name: "x"}, bytes.NewReader(raw), 4))(t)
	if blob.Text != "" || blob.ID == text.ID {
		t.Errorf("got %+v", blob)
	}
	found, r, err := u.OpenFile(ctx, a.ID, blob.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := try(io.ReadAll(r))(t); !bytes.Equal(got, raw) || found != blob {
		t.Errorf("got %x and %+v, want %x and %+v", got, found, raw, blob)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := u.SaveFile(ctx, a.ID, claybot.FileReference{Name: "x"}, bytes.NewReader(raw), 3); !errors.Is(err, storage.ErrTooMany) {
		t.Errorf("too large: got %v", err)
	}
	for _, id := range []string{"", "nothere", "../" + blob.ID, blob.ID + ".json", string(claybot.NewID())} {
		if _, _, err := u.OpenFile(ctx, a.ID, id); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("file %q: got %v", id, err)
		}
	}
	if _, _, err := u.OpenFile(ctx, b.ID, blob.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the file of another agent: got %v", err)
	}
	if _, err := u.SaveFile(ctx, claybot.NewID(), claybot.FileReference{Name: "x"}, bytes.NewReader(raw), 9); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("no such agent: got %v", err)
	}
	if _, err := u.SaveFile(ctx, a.ID, claybot.FileReference{Name: "x"}, io.MultiReader(bytes.NewReader(raw), iotest.ErrReader(errBroken)), 9); !errors.Is(err, errBroken) {
		t.Errorf("the sender broke off: got %v", err)
	}
	sentAttachments(t, u)
	namedAttachment(t, u, a.ID, b.ID)
	largeAttachments(t, u, a.ID)
	slowAttachment(t, u, a.ID)
}

var errBroken = errors.New("the line is broken")

// namedAttachment: a file that has its id already is kept once for each agent.
func namedAttachment(t *testing.T, u AgentsUnderTest, one, other claybot.AgentID) {
	t.Helper()
	ctx := t.Context()
	f := claybot.FileReference{ID: string(claybot.NewID()), Name: "named", Kind: claybot.FileVoice, Seconds: 9, Source: "far away"}
	if _, err := u.SaveFile(ctx, one, f, io.MultiReader(strings.NewReader("be"), iotest.ErrReader(errBroken)), 9); !errors.Is(err, errBroken) {
		t.Errorf("the sender broke off: got %v", err)
	}
	kept := try(u.SaveFile(ctx, one, f, strings.NewReader("bytes"), 9))(t)
	if kept.ID != f.ID || kept.Kind != f.Kind || kept.Seconds != 9 || kept.Source != "" || kept.Size != 5 {
		t.Errorf("got %+v", kept)
	}
	if again := try(u.SaveFile(ctx, one, f, iotest.ErrReader(errBroken), 9))(t); again != kept {
		t.Errorf("again: got %+v, want %+v", again, kept)
	}
	if theirs := try(u.SaveFile(ctx, other, f, strings.NewReader("others"), 9))(t); theirs.Size != 6 || theirs.Path == kept.Path {
		t.Errorf("of another agent: got %+v", theirs)
	}
	f.ID = "../" + f.ID
	if _, err := u.SaveFile(ctx, one, f, strings.NewReader("bytes"), 9); err == nil {
		t.Error("an id that leads elsewhere was taken")
	}
}

// largeAttachments keeps files of several pieces and gives them back.
func largeAttachments(t *testing.T, u AgentsUnderTest, id claybot.AgentID) {
	words := []byte(strings.Repeat("plain words, many of them\n", 20_000))
	odd := append(bytes.Clone(words), 0)
	var kept []claybot.FileReference
	for _, content := range [][]byte{words, odd, {}} {
		f := try(u.SaveFile(t.Context(), id, claybot.FileReference{Name: "large"}, iotest.HalfReader(bytes.NewReader(content)), int64(len(content))))(t)
		sum := sha256.Sum256(content)
		if f.Size != int64(len(content)) || f.SHA256 != hex.EncodeToString(sum[:]) || f.Text != "" {
			t.Errorf("%d bytes: got size %d, sum %s, %d bytes of text", len(content), f.Size, f.SHA256, len(f.Text))
		}
		kept = append(kept, f)
	}
	agents := u.Reopen()
	for i, content := range [][]byte{words, odd, {}} {
		found, r, err := agents.OpenFile(t.Context(), id, kept[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		if got := try(io.ReadAll(r))(t); !bytes.Equal(got, content) || found != kept[i] {
			t.Errorf("%d bytes: got %d and %+v, want %+v", len(content), len(got), found, kept[i])
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// slowAttachment does other things with an agent while a file arrives for it.
func slowAttachment(t *testing.T, u AgentsUnderTest, id claybot.AgentID) {
	agents := u.Reopen()
	r, w := io.Pipe()
	ended := make(chan claybot.FileReference, 1)
	go func() {
		f, err := agents.SaveFile(t.Context(), id, claybot.FileReference{Name: "slow"}, r, 10)
		if err != nil {
			t.Error(err)
		}
		ended <- f
	}()
	try(w.Write([]byte("sl")))(t) // it is being read now
	quick := try(agents.SaveFile(t.Context(), id, claybot.FileReference{Name: "quick"}, strings.NewReader("quick"), 10))(t)
	if err := agents.SaveState(t.Context(), u.Lease(id), claybot.AgentState{Engine: "meanwhile"}); err != nil {
		t.Error(err)
	}
	try(w.Write([]byte("ow")))(t)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if slow := <-ended; slow.Text != "slow" || quick.Text != "quick" || slow.ID == quick.ID {
		t.Errorf("got %+v and %+v", slow, quick)
	}
}

// sentAttachments: what a person sent counts, each file once, and nothing else does.
func sentAttachments(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("web", "main", "sender")))(t)
	count := func(want int64) {
		t.Helper()
		if got := try(u.SentBytes(ctx, a.ID))(t); got != want {
			t.Errorf("%d bytes count as sent, want %d", got, want)
		}
	}
	count(0)
	f := claybot.FileReference{ID: string(claybot.NewID()), Name: "sent", Sent: true}
	for range 2 {
		if kept := try(u.SaveFile(ctx, a.ID, f, strings.NewReader("hello"), 9))(t); !kept.Sent {
			t.Errorf("got %+v", kept)
		}
	}
	count(5)
	_ = try(u.SaveFile(ctx, a.ID, claybot.FileReference{Name: "created"}, strings.NewReader("created"), 9))(t)
	for limit, content := range map[int64]io.Reader{3: strings.NewReader("long"), 9: iotest.ErrReader(errBroken)} {
		if _, err := u.SaveFile(ctx, a.ID, claybot.FileReference{Name: "x", Sent: true}, content, limit); err == nil {
			t.Error("a file that failed was stored")
		}
	}
	count(5)
	_ = try(u.SaveFile(ctx, a.ID, claybot.FileReference{Name: "more", Sent: true}, strings.NewReader("more"), 9))(t)
	count(9)
	b := try(u.AgentFor(ctx, claybot.User("web", "main", "sender too")))(t)
	_ = try(u.SaveFile(ctx, b.ID, claybot.FileReference{Name: "sent", Sent: true}, strings.NewReader("of b"), 9))(t)
	sum := func(want int64, ids ...claybot.AgentID) {
		t.Helper()
		if got, err := u.SentBytes(ctx, ids...); got != want || err != nil {
			t.Errorf("of %d agents: got %d, %v, want %d", len(ids), got, err, want)
		}
	}
	sum(0)
	sum(0, claybot.NewID())
	sum(13, a.ID, claybot.NewID(), b.ID)
	if err := u.Delete(ctx, b.ID); err != nil {
		t.Fatal(err)
	}
	sum(9, a.ID, b.ID)
}
