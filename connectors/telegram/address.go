package telegram

import (
	"strings"
	"unicode/utf8"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
)

// An address is how users address the bot in a group.
type address struct {
	username string
	botID    int64
}

// strip reports whether text addresses the bot, by its @name, by a mention
// without a name or by a command for it, and returns text without a mention at
// its start.
func (a address) strip(text string, entities []tgbotapi.MessageEntity) (rest string, ours bool) {
	rest = text
	for _, e := range entities {
		part, start, ok := utf16Slice(text, e.Offset, e.Length)
		if !ok {
			continue
		}
		switch e.Type {
		case "mention":
			if a.username == "" || !strings.EqualFold(part, "@"+a.username) {
				continue
			}
		case "text_mention":
			if e.User == nil || e.User.ID != a.botID {
				continue
			}
		case "bot_command":
			_, bot, _ := strings.Cut(part, "@")
			if start == 0 && a.username != "" && strings.EqualFold(bot, a.username) {
				ours = true
			}
			continue
		default:
			continue
		}
		ours = true
		if strings.TrimSpace(text[:start]) == "" {
			rest = strings.TrimLeft(text[start+len(part):], " \t\r\n,:")
		}
	}
	return rest, ours
}

// utf16Slice is the part of s at offset, which like length counts UTF-16
// units, and the byte at which it starts. ok is false when there is no such
// part, or it would cut a character.
func utf16Slice(s string, offset, length int) (part string, start int, ok bool) {
	if offset < 0 || length <= 0 {
		return "", 0, false
	}
	start = -1
	units := 0
	for i := 0; i <= len(s); {
		if units == offset {
			start = i
		}
		if start >= 0 && units == offset+length {
			return s[start:i], start, true
		}
		if i == len(s) || units > offset+length {
			break
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		units++
		if r > 0xffff {
			units++
		}
	}
	return "", 0, false
}
