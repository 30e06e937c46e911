package react

import (
	"strings"
	"testing"

	"github.com/claybot/claybot/llm"
)

// The room for documents shrinks in few steps while a conversation grows, never above what the texts leave: each step may take a
// document out of the chat's middle, where a provider's cache ends then.
func TestRoomForDocumentsShrinksInSteps(t *testing.T) {
	w := &window{total: 100_000, scale: 1, system: "be nice"}
	room, steps, before := w.room(), 0, int64(-1)
	for n := 0; n < 500_000; n += 500 {
		m := []llm.Message{{Role: llm.RoleUser, Content: strings.Repeat("x", n)}}
		left, texts := w.left(m), llm.Estimate(llm.Request{System: w.system, Messages: m}, llm.Response{}).Input
		if left < 0 || left > room*documentPart/100 || left > max(room-texts, 0) {
			t.Fatalf("%d tokens of %d are left beside %d", left, room, texts)
		}
		if n == 0 && left < room*documentPart/100-documentSteps {
			t.Errorf("an empty chat leaves %d of %d tokens", left, room)
		}
		if before >= 0 && left > before {
			t.Errorf("%d tokens are left beside more texts, were %d", left, before)
		}
		if left != before {
			steps++
		}
		before = left
	}
	if steps != documentSteps+1 {
		t.Errorf("%d steps, want %d", steps, documentSteps+1)
	}
}
