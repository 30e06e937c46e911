package relational_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

func TestDamagedMessage(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	post(t, db, "m1")
	post(t, db, "m2")
	spoil(t, db, "messages", "m1")
	if _, err := db.Receipt(ctx, "m1"); !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("receipt: %v", err)
	}
	if _, err := db.Receipt(ctx, "m2"); err != nil {
		t.Errorf("receipt of another: %v", err)
	}
	if p, err := db.Post(ctx, storage.Posting{To: theAgent.ID, Message: textMessage("m1")}); err != nil || p.Added {
		t.Errorf("a damaged message is known all the same: %+v, %v", p, err)
	}
	if e, err := db.Transcript(ctx, theAgent.ID, "", 10); err != nil || len(e) != 1 {
		t.Errorf("transcript %v, %v", e, err)
	}
	acquired, _, err := db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil || len(acquired) != 1 || len(acquired[0].Waiting) != 1 || acquired[0].Waiting[0].ID != "m2" {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	if _, err := db.Begin(ctx, acquired[0].Lease, "r1", []claybot.MessageID{"m2"}, storage.Beginning{}); err != nil {
		t.Fatal(err)
	}
	// A run goes on without the text of a message it has taken.
	spoil(t, db, "messages", "m2")
	if err := db.Release(ctx, acquired[0].Lease, storage.Wait{}, true); err != nil {
		t.Fatal(err)
	}
	acquired, _, err = db.Acquire(ctx, "n", time.Hour, 1, 10)
	if err != nil || len(acquired) != 1 || acquired[0].Run == nil || len(acquired[0].Bound) != 0 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	checkFigures(t, db)
}

// TestOnlyDamagedWaits: nothing is left to hold the agent for.
func TestOnlyDamagedWaits(t *testing.T) {
	db := openFresh(t)
	post(t, db, "m1")
	spoil(t, db, "messages", "m1")
	acquired, next, err := db.Acquire(t.Context(), "n", time.Hour, 1, 10)
	if err != nil || len(acquired) != 0 || !next.IsZero() {
		t.Fatalf("acquired %+v, next %v, %v", acquired, next, err)
	}
	post(t, db, "m2")
	if acquired, _, err = db.Acquire(t.Context(), "n", time.Hour, 1, 10); err != nil || len(acquired) != 1 {
		t.Fatalf("acquired %+v, %v", acquired, err)
	}
	checkFigures(t, db)
}

func TestDamagedOutgoing(t *testing.T) {
	db := openFresh(t)
	ctx := t.Context()
	route := theAgent.Descriptor.Route()
	for _, id := range []string{"o1", "o2", "o3"} {
		if _, err := db.Enqueue(ctx, claybot.Outgoing{ID: id, Route: route, Text: "text"}); err != nil {
			t.Fatal(err)
		}
	}
	spoil(t, db, "outbox", "o1")
	spoil(t, db, "outbox", "o2")
	// The window is filled by damaged ones alone, and still the good one comes.
	out, err := db.Unsent(ctx, route.Dest(), 0, 2)
	if err != nil || len(out) != 1 || out[0].ID != "o3" {
		t.Fatalf("unsent %+v, %v", out, err)
	}
	f, err := db.Stats(ctx)
	if err != nil || f.Outbox[claybot.SendFailed] != 2 {
		t.Errorf("figures %+v, %v", f, err)
	}
	if out, err := db.SentAfter(ctx, route.Dest(), 0, 10); err != nil || len(out) != 1 {
		t.Errorf("sent %+v, %v", out, err)
	}
	spoil(t, db, "outbox", "o3")
	err = db.Resolve(ctx, storage.Claim{}, "o3", storage.Resolution{State: claybot.SendWaiting, Resent: true})
	if !errors.Is(err, storage.ErrDamaged) {
		t.Errorf("a damaged text was changed: %v", err)
	}
}

// A parked message that is damaged says so wherever the damage is, hides none behind
// it, and ends by its id. A row that an earlier version wrote, whose checksum covers the
// body alone, is read all the same.
func TestDamagedParkedMessage(t *testing.T) {
	d := claybot.User("telegram", "C9", "U9")
	d.Name = "text"
	for name, c := range map[string]struct {
		change  string
		damaged bool
		to      claybot.Descriptor
	}{
		"body":                        {"body = replace(body, 'text', 'tExt')", true, d},
		"identity":                    {"descriptor = replace(descriptor, 'U9', 'U8')", true, claybot.Descriptor{}},
		"name":                        {"descriptor = replace(descriptor, 'text', 'tExt')", true, claybot.Descriptor{Type: d.Type, Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID, Name: "tExt"}},
		"descriptor":                  {"descriptor = '{'", true, claybot.Descriptor{}},
		"identity, earlier version":   {"crc = BODYCRC, descriptor = replace(descriptor, 'U9', 'U8')", true, claybot.Descriptor{}},
		"nothing, in earlier version": {"crc = BODYCRC", false, d},
	} {
		t.Run(name, func(t *testing.T) {
			db := openFresh(t)
			ctx := t.Context()
			for _, id := range []claybot.MessageID{"m1", "m2"} {
				if _, err := db.Park(ctx, storage.Parked{To: d, Message: textMessage(id)}, storage.ParkRules{}); err != nil {
					t.Fatal(err)
				}
			}
			body := ""
			rows(t, db, "SELECT body FROM parked WHERE id = 'm1'", func(r relational.Row) { body = r.Str(0) })
			sum := crc32.Checksum([]byte(body), crc32.MakeTable(crc32.Castagnoli))
			change(t, db, "UPDATE parked SET "+strings.ReplaceAll(c.change, "BODYCRC", fmt.Sprint(sum))+" WHERE id = 'm1'")
			list, err := db.ParkedOf(ctx, d.Key(), 9)
			if err != nil || len(list) != 2 {
				t.Fatalf("parked %+v, %v", list, err)
			}
			if p := list[0]; p.Message.ID != "m1" || p.To != c.to || p.Key != d.Key() || errors.Is(p.Damaged, storage.ErrDamaged) != c.damaged {
				t.Errorf("the damaged one: %+v", p)
			}
			if p := list[1]; p.Message.ID != "m2" || p.Damaged != nil {
				t.Errorf("the one behind it: %+v", p)
			}
			if added, err := db.Park(ctx, storage.Parked{To: d, Message: textMessage("m1")}, storage.ParkRules{}); err != nil || added {
				t.Errorf("a damaged message is known all the same: %v, %v", added, err)
			}
			if _, err := db.Receipt(ctx, "m1"); errors.Is(err, storage.ErrDamaged) != c.damaged {
				t.Errorf("receipt: %v", err)
			}
			if ended, err := db.EndParked(ctx, list[0], "damaged"); err != nil || !ended {
				t.Errorf("end: %v, %v", ended, err)
			}
			if r, err := db.Receipt(ctx, "m1"); err != nil || r.Skipped != "damaged" {
				t.Errorf("receipt of the end: %+v, %v", r, err)
			}
			if list, err := db.ParkedOf(ctx, d.Key(), 9); err != nil || len(list) != 1 {
				t.Errorf("parked afterwards: %+v, %v", list, err)
			}
		})
	}
}
