package relational

import (
	"errors"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

func FuzzDecode(f *testing.F) {
	body, crc, err := encode(claybot.AgentMessage{ID: "m1", Type: claybot.MessageUser, Text: "text of m1"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body, int64(crc))
	f.Add("", int64(0))
	f.Add(strings.Repeat("[", 20_000), int64(1))
	f.Fuzz(func(t *testing.T, body string, crc int64) {
		for _, v := range []any{new(claybot.AgentMessage), new(claybot.Outgoing)} {
			if err := decode(body, crc, v); err != nil && !errors.Is(err, storage.ErrDamaged) {
				t.Errorf("error %v does not say that the text is damaged", err)
			}
		}
		// With the right checksum only the JSON decides.
		var m claybot.AgentMessage
		if again, crc, err := encode(body); err != nil {
			t.Fatal(err)
		} else if err := decode(again, int64(crc), new(string)); err != nil {
			t.Errorf("own encoding: %v", err)
		} else if err := decode(again, int64(crc)+1, &m); err == nil {
			t.Error("a wrong checksum was accepted")
		}
	})
}
