package main

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

// The doctor names a dead route by the id that its chat has now, once, whatever id it was marked with.
func TestDoctorNamesDeadRoutes(t *testing.T) {
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		storage.CheckpointMoved + "slack/T1/C1": `{"connector":"slack","from":"T1/C1","to":"T1/C9","at":5}`,
		delivery.DeadPrefix + "slack/T1/C1":     `{"connector":"slack","channelId":"T1/C1","why":"kicked","since":1}`,
		delivery.DeadPrefix + "slack/T1/C9":     `{"connector":"slack","channelId":"T1/C9","why":"kicked again","since":2}`,
		delivery.DeadPrefix + "slack/T1/C2":     `{"connector":"slack","channelId":"T1/C2","why":"archived","since":1}`,
		delivery.DeadPrefix + "slack/T1/C3":     `{`,
	} {
		if err := db.SetCheckpoint(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d := &doctor{config: configs.Config{DataDir: dir}, hide: strings.NewReplacer()}
	d.chats(t.Context())
	d.routes(t.Context())
	var got []string
	for _, f := range d.all {
		got = append(got, f.Text)
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], "slack/T1/C2 is dead") || !strings.HasPrefix(got[1], "slack/T1/C9 is dead") {
		t.Errorf("%q", got)
	}
}

// The doctor names messages that wait in the outbox for more than an hour.
func TestDoctorNamesWhatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		db, err := sqlite.Open(t.Context(), filepath.Join(dir, "claybot.db"), sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		send := func(id string) {
			if _, err := db.Enqueue(t.Context(), claybot.Outgoing{ID: id, Route: claybot.Route{Connector: "telegram", ChannelID: "1"}, State: claybot.SendWaiting, Text: "hello"}); err != nil {
				t.Fatal(err)
			}
		}
		send("a")
		send("b")
		time.Sleep(2 * time.Hour)
		send("c")
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		d := &doctor{config: configs.Config{DataDir: dir}, hide: strings.NewReplacer()}
		d.outbox(t.Context())
		if len(d.all) != 1 || d.all[0].Code != "outbox-stuck" || !strings.HasPrefix(d.all[0].Text, "2 messages not sent, the oldest since ") || d.all[0].Next != "start claybot, which sends them" {
			t.Errorf("%+v", d.all)
		}
	})
}
