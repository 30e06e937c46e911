package agentsystem

import (
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// The language of a person is read only for what is said to them, so that a message is stored
// without it.
func TestPreparedWithoutALanguage(t *testing.T) {
	for _, typ := range []claybot.MessageType{claybot.MessageUser, claybot.MessageEdit} {
		ctx := texts.With(t.Context(), func() texts.Voice {
			t.Errorf("%s: the language was read", typ)
			return texts.Voice{}
		})
		x := &preparer{noteEdits: func() bool { return false }}
		p := storage.Posting{Message: claybot.AgentMessage{ID: "m", Type: typ, Text: "hello"}}
		if err := x.prepare(ctx, claybot.Agent{}, &p); err != nil || p.Skip != "" || p.Replies != nil {
			t.Errorf("%+v, %v", p, err)
		}
	}
}
