package slack

import (
	"encoding/json"
	"testing"
)

// Files and what is passed on taint a message; links that Slack shows do not.
func TestTainted(t *testing.T) {
	for fields, want := range map[string]bool{
		`{}`: false,
		`{"files":[{"id":"F1","name":"a.txt"}],"subtype":"file_share"}`: true,
		`{"files":[{"id":"F1","mode":"tombstone"}]}`:                    true,
		`{"attachments":[{"is_share":true,"text":"evil.test"}]}`:        true,
		`{"attachments":[{"is_msg_unfurl":true}]}`:                      true,
		`{"attachments":[{"from_url":"https://example.org"}]}`:          false,
	} {
		event := map[string]any{"type": "message", "channel": "D1", "channel_type": "im", "user": "U1", "text": "look", "ts": "1700000000.000100"}
		if err := json.Unmarshal([]byte(fields), &event); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]any{"team_id": "T1", "event": event})
		if err != nil {
			t.Fatal(err)
		}
		in, v := read("slack", me, frame{Type: "events_api", Payload: body})
		if v != message || in.message.Tainted != want {
			t.Errorf("%s: %v, tainted %v", fields, v, in.message.Tainted)
		}
	}
}
