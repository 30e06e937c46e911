package agentsystem

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// UserSecrets is what happens to tokens, keys and passwords that people paste into
// messages.
type UserSecrets string

// What happens to secrets. Anything else means MaskSecrets.
const (
	MaskSecrets   UserSecrets = "mask"   // they are taken out before anything is stored
	KeepSecrets   UserSecrets = "keep"   // they stay
	RefuseSecrets UserSecrets = "refuse" // messages with secrets run nothing, and are stored without them
)

// skippedSecret is why a message with a secret did not run.
const skippedSecret = "secret"

// A secretRule says what happens to secrets now.
type secretRule func() UserSecrets

// masked is a text of a person as it may be stored.
func (rule secretRule) masked(text string) string {
	text = claybot.Clean(text)
	if rule() != KeepSecrets {
		text, _ = platforms.MaskSecrets(text)
	}
	return text
}

// cleaned returns a message as it may be stored: readable, and without secrets. It may be
// called again with what it returned.
func (rule secretRule) cleaned(m claybot.AgentMessage) claybot.AgentMessage {
	m.Text = claybot.Clean(m.Text)
	if m.Type == claybot.MessageSystem && m.Flow == nil || rule() == KeepSecrets {
		return m
	}
	var found, quoted []string
	m.Payload = maskedJSON(m.Payload)
	m.Text, found = platforms.MaskSecrets(m.Text)
	m.Context.Quote, quoted = platforms.MaskSecrets(m.Context.Quote)
	if found = append(found, quoted...); len(found) > 0 {
		m.Masked = found
	}
	return m
}

// maskedJSON is an event of a program without secrets in its texts.
func maskedJSON(raw json.RawMessage) json.RawMessage {
	if _, found := platforms.MaskSecrets(string(raw)); len(found) == 0 {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(maskedValue(v)) != nil { // it came from JSON
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

func maskedValue(v any) any {
	switch v := v.(type) {
	case string:
		text, _ := platforms.MaskSecrets(v)
		return text
	case []any:
		for i := range v {
			v[i] = maskedValue(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = maskedValue(v[k])
		}
	}
	return v
}

// note has a message whose secrets were taken out say so to its person or, as the settings say,
// not run.
func (rule secretRule) note(ctx context.Context, p *storage.Posting, say func(claybot.OutgoingKind, string) []claybot.Outgoing) {
	switch found := p.Message.Masked; {
	case len(found) == 0:
	case rule() == RefuseSecrets:
		p.Skip, p.Replies = skippedSecret, say(claybot.OutgoingNotice, texts.Of(ctx).SecretRefused(found))
	default:
		p.Replies = say(claybot.OutgoingNotice, texts.Of(ctx).SecretMasked(found))
	}
}
