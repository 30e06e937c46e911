package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
)

var (
	_ connectors.Reactor = (*Connector)(nil)
	_ connectors.Marker  = (*Connector)(nil)
)

// emojiNames maps the emoji that models commonly use to Slack's names. Other
// emoji can be given by name.
var emojiNames = map[string]string{
	"👍": "+1", "👎": "-1", "❤": "heart", "🔥": "fire", "🥰": "smiling_face_with_3_hearts", "👏": "clap", "😁": "grin",
	"🤔": "thinking_face", "🤯": "exploding_head", "😱": "scream", "😢": "cry", "🎉": "tada", "🤩": "star-struck", "🙏": "pray",
	"👌": "ok_hand", "😍": "heart_eyes", "💯": "100", "🤣": "rolling_on_the_floor_laughing", "⚡": "zap", "🏆": "trophy",
	"💔": "broken_heart", "😐": "neutral_face", "😭": "sob", "👀": "eyes", "🎃": "jack_o_lantern", "🙈": "see_no_evil",
	"🤝": "handshake", "✍": "writing_hand", "🤗": "hugging_face", "🫡": "saluting_face", "🎄": "christmas_tree", "🤷": "shrug",
	"😎": "sunglasses", "✅": "white_check_mark", "❌": "x", "⏳": "hourglass_flowing_sand", "⚠": "warning", "🚀": "rocket",
	"😂": "joy", "😀": "grinning", "😄": "smile", "😊": "blush", "🙂": "slightly_smiling_face", "😅": "sweat_smile", "👋": "wave",
	"💪": "muscle", "🙌": "raised_hands", "⭐": "star", "✨": "sparkles", "❓": "question", "❗": "exclamation", "📌": "pushpin",
	"🛑": "octagonal_sign", "✋": "hand", "🚫": "no_entry_sign", "👨‍💻": "male-technologist", "💡": "bulb", "🐛": "bug", "🔍": "mag", "📎": "paperclip", "✔": "heavy_check_mark",
}

// emojiName returns Slack's name of an emoji, empty if unknown.
func emojiName(emoji string) string {
	if name := emojiNames[strings.ReplaceAll(emoji, "\ufe0f", "")]; name != "" {
		return name
	}
	name := strings.ToLower(strings.Trim(emoji, ":"))
	ok := name != "" && len(name) <= 100 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-+':") == ""
	if !ok {
		return ""
	}
	return name
}

// Mark implements connectors.Marker: Slack keeps the emoji that were there before, so they
// are removed one by one.
func (c *Connector) Mark(ctx context.Context, r claybot.Route, m claybot.Mark) error {
	if m.Emoji != "" {
		if err := c.React(ctx, r, m.Message, m.Emoji); err != nil {
			return err
		}
	}
	for _, old := range m.Was {
		if err := c.unreact(ctx, r, m.Message, old); err != nil {
			return err
		}
	}
	return nil
}

// unreact removes an emoji of the bot from a message.
func (c *Connector) unreact(ctx context.Context, r claybot.Route, message, emoji string) error {
	_, channel, _ := strings.Cut(r.ChannelID, "/")
	name := emojiName(emoji)
	if name == "" {
		return nil // it was never there
	}
	if d := c.penalties.left(methodUnreact, channel); d > 0 {
		return &connectors.RetryError{After: d, Err: errors.New(methodUnreact + ": slack asked for a pause")}
	}
	err := c.api.RemoveReactionContext(ctx, name, slackapi.ItemRef{Channel: channel, Timestamp: message})
	if err == nil {
		return nil
	}
	if d := waitFor(err); d > 0 {
		c.penalties.add(methodUnreact, channel, d)
		return &connectors.RetryError{After: d, Err: errors.New(methodUnreact + ": too many calls")}
	}
	if code, k := judge(err); code != "" && k != server && k != account {
		return nil // it is not there, nor is the message any more
	}
	return c.refused(methodUnreact, c.cfg.BotTokenName, err)
}

// React adds an emoji to a message.
func (c *Connector) React(ctx context.Context, r claybot.Route, message, emoji string) error {
	_, channel, ok := strings.Cut(r.ChannelID, "/")
	if !ok || channel == "" || message == "" {
		return &connectors.RefusedError{Text: "there is no such message here"}
	}
	name := emojiName(emoji)
	if name == "" {
		return &connectors.RefusedError{Text: "Slack's name of that emoji is not known here; give the name, such as :tada:"}
	}
	if d := c.penalties.left(methodReact, channel); d > 0 {
		return &connectors.RetryError{After: d, Err: errors.New(methodReact + ": slack asked for a pause")}
	}
	err := c.api.AddReactionContext(ctx, name, slackapi.ItemRef{Channel: channel, Timestamp: message})
	if err == nil {
		return nil
	}
	if d := waitFor(err); d > 0 {
		c.penalties.add(methodReact, channel, d)
		return &connectors.RetryError{After: d, Err: errors.New(methodReact + ": too many calls")}
	}
	cause := c.refused(methodReact, c.cfg.BotTokenName, err)
	switch code, k := judge(err); {
	case code == "already_reacted":
		return nil
	case code == "invalid_name":
		return &connectors.RefusedError{Text: fmt.Sprintf("this workspace has no emoji :%s:", name), Err: cause}
	case code == "message_not_found" || code == "bad_timestamp":
		return &connectors.RefusedError{Text: "the message is not there any more", Err: cause}
	case code == "too_many_emoji" || code == "too_many_reactions":
		return &connectors.RefusedError{Text: "the message has as many reactions as Slack allows", Err: cause}
	case code == "missing_scope":
		return &connectors.RefusedError{Text: noScope("reactions:write"), Err: cause}
	case code == "not_reactable" || code == "thread_locked" || k == route:
		return &connectors.RefusedError{Text: "Slack does not allow it in this channel", Err: cause}
	}
	return cause
}
