package telegram

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// sharePhoto lets a person share a part of an album.
func (b *bubble) sharePhoto(chat, user int64, album, caption string) {
	b.t.Helper()
	in := telegramtest.Incoming{ChatID: chat, UserID: user, MediaGroup: album, Caption: caption, Fields: map[string]any{
		"photo": []any{map[string]any{"file_id": "f", "width": 1, "height": 1}},
	}}
	if caption != "" {
		in.Fields["caption_entities"] = []any{map[string]any{"type": "mention", "offset": 0, "length": len("@claybot")}}
	}
	if update, _ := b.server.Write(in); update == 0 {
		b.t.Error("privacy mode hides the photo")
	}
}

// Of an album in a group, only one part has the caption that names the bot; all of them are for
// it, also in later polls, behind a restart, and while those of other albums arrive.
func TestAlbumInAGroup(t *testing.T) {
	inBubbleWith(t, telegramtest.Config{SeesAll: true}, Config{Marks: memory{}}, func(t *testing.T, b *bubble) {
		b.sharePhoto(-100, 7, "other", "")
		b.sharePhoto(-100, 7, "mine", "@claybot what is that?")
		b.sharePhoto(-100, 7, "mine", "")
		b.sharePhoto(-200, 7, "mine", "") // ids are of one chat
		b.run()
		time.Sleep(time.Minute)
		b.sharePhoto(-100, 7, "mine", "")
		synctest.Wait()
		_ = b.end()
		b.conn = New(b.conn.cfg)
		b.sharePhoto(-100, 7, "mine", "")
		b.sharePhoto(-100, 7, "other", "")
		b.run()
		synctest.Wait()
		var got []string // the chats have no order among them
		for i, m := range b.sink.got {
			got = append(got, fmt.Sprintf("%s %s %v", b.sink.to[i].ChannelID, m.Context.GroupID, !m.Context.Unaddressed))
		}
		slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:4], b[:4]) })
		want := []string{"-100 other false", "-100 mine true", "-100 mine true", "-100 mine true", "-100 mine true", "-100 other false", "-200 mine false"}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// Marks that fail hold up the part: it is not taken for a stray photo.
func TestAlbumWhileTheStoreFails(t *testing.T) {
	marks := &brokenMarks{memory{}, 2}
	inBubbleWith(t, telegramtest.Config{SeesAll: true}, Config{Marks: marks}, func(t *testing.T, b *bubble) {
		b.sharePhoto(-100, 7, "mine", "@claybot what is that?")
		b.sharePhoto(-100, 7, "mine", "")
		b.run()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if len(b.sink.got) != 2 || b.sink.got[0].Context.Unaddressed || b.sink.got[1].Context.Unaddressed || marks.fails > 0 {
			t.Errorf("got %+v", b.sink.got)
		}
	})
}

type brokenMarks struct {
	memory
	fails int // of the first albums
}

func (m *brokenMarks) SetCheckpoint(ctx context.Context, key, value string) error {
	if strings.Contains(key, "/album/") && m.fails > 0 {
		m.fails--
		return errors.New("the store fails")
	}
	return m.memory.SetCheckpoint(ctx, key, value)
}

// Stickers that do not move are pictures, and what moves is its emoji; the tasks of a checklist
// are read.
func TestStickersAndChecklists(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		still := map[string]any{"file_id": "s1", "file_unique_id": "u1", "emoji": "👍", "file_size": 20_000}
		for _, fields := range []map[string]any{
			{"sticker": still},
			{"sticker": map[string]any{"file_id": "s2", "emoji": "👍", "is_animated": true}},
			{"sticker": map[string]any{"file_id": "s3", "emoji": "👍", "is_video": true}},
			{"sticker": map[string]any{}},
			{"checklist": map[string]any{"title": "Trip", "tasks": []any{map[string]any{"id": 1, "text": "book [now]", "completion_date": 1}, map[string]any{"id": 2, "text": "pack"}}}},
			{"checklist": map[string]any{}},
		} {
			b.server.Write(telegramtest.Incoming{ChatID: 7, UserID: 7, Fields: fields})
		}
		b.run()
		synctest.Wait()
		want := []string{"👍\n[sticker]", "👍\n[sticker]", "👍\n[sticker]", "[sticker]", "[checklist: Trip / book now (done) / pack]", "[checklist: ]"}
		if got := b.sink.texts(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for i, m := range b.sink.got {
			if files := len(m.Files); (files > 0) != (i == 0) || i == 0 && (m.Files[0].MIMEType != "image/webp" || !m.Tainted) {
				t.Errorf("message %d: %+v, tainted %v", i, m.Files, m.Tainted)
			}
		}
	})
}
