package delivery_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// A markedChat tells what it is given.
type markedChat struct {
	chat
	done chan string
}

func (c markedChat) Send(_ context.Context, o claybot.Outgoing) (string, error) {
	c.done <- "sent " + o.Text
	return "1", nil
}

func (c markedChat) Mark(_ context.Context, _ claybot.Route, m claybot.Mark) error {
	c.done <- "marked " + m.Emoji
	return nil
}

// A mark is never sent as a message, also not by a member of an earlier version, which reads
// nothing of a mark and has no lane aside.
func TestMarkAtAnEarlierVersion(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db, err := sqlite.Open(ctx, filepath.Join(t.TempDir(), "db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	c := markedChat{done: make(chan string, 9)}
	d := delivery.New(delivery.Config{
		Outbox: db, Reader: db, Members: cluster.Alone(storage.Member{ID: "me"}), Meter: meter{}, Log: slog.New(slog.DiscardHandler),
		Connector: func(string) connectors.Connector { return c }, Active: func(string) connectors.Connector { return c }, Allowed: func(claybot.Outgoing) bool { return true },
	})
	if err := d.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	agent := claybot.Agent{ID: "a", Descriptor: claybot.User("chat", "room", "ann")}
	said := claybot.AgentMessage{ID: "m", Type: claybot.MessageUser, Context: claybot.MessageContext{MessageID: "1"}}
	marks := d.Marks(agent, "", "old", "x", nil, said)
	if len(marks) != 1 {
		t.Fatalf("%+v", marks)
	}
	old := marks[0]
	old.Mark, old.Route.Aside = nil, false
	last := old
	last.ID, last.Text, last.EditOf, last.EditOnly = "last", "hello", "", false
	if _, err := d.Send(ctx, old, last); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Send(ctx, d.Marks(agent, "", "new", "y", nil, said)...); err != nil {
		t.Fatal(err)
	}
	got := []string{<-c.done, <-c.done}
	slices.Sort(got)
	if !slices.Equal(got, []string{"marked y", "sent hello"}) {
		t.Errorf("%q", got)
	}
	for end := time.Now().Add(time.Minute); ; {
		o, err := db.OutgoingByID(ctx, old.ID)
		if err == nil && o.State == claybot.SendFailed {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, %v", o, err)
		}
	}
}
