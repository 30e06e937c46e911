package telegram

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

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
