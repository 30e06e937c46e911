package telegram

import (
	"fmt"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"github.com/claybot/claybot/connectors"
)

// content is the non-text content of a message.
type content struct {
	Animation *tgbotapi.Animation  `json:"animation"`
	Audio     *tgbotapi.Audio      `json:"audio"`
	Document  *tgbotapi.Document   `json:"document"`
	Photo     []tgbotapi.PhotoSize `json:"photo"`
	Sticker   *sticker             `json:"sticker"`
	Video     *tgbotapi.Video      `json:"video"`
	VideoNote *tgbotapi.VideoNote  `json:"video_note"`
	Voice     *tgbotapi.Voice      `json:"voice"`
	Contact   *tgbotapi.Contact    `json:"contact"`
	Dice      *tgbotapi.Dice       `json:"dice"`
	Game      *struct{}            `json:"game"`
	Poll      *tgbotapi.Poll       `json:"poll"`
	Venue     *tgbotapi.Venue      `json:"venue"`
	Location  *tgbotapi.Location   `json:"location"`
	Story     *struct{}            `json:"story"`
	PaidMedia *struct{}            `json:"paid_media"`
	Checklist *checklist           `json:"checklist"`
	Invoice   *struct{}            `json:"invoice"`
	Giveaway  *struct{}            `json:"giveaway"`
}

// A sticker is a picture, unless it moves (core.telegram.org/bots/api#sticker, read 2026-11-28).
type sticker struct {
	FileID       string `json:"file_id"`
	FileUniqueID string `json:"file_unique_id"`
	FileSize     int    `json:"file_size"`
	Emoji        string `json:"emoji"`
	Animated     bool   `json:"is_animated"`
	Video        bool   `json:"is_video"`
}

// still reports whether it is a picture that can be fetched.
func (s *sticker) still() bool { return s != nil && s.FileID != "" && !s.Animated && !s.Video }

// A checklist is a list of tasks (core.telegram.org/bots/api#checklist, read 2026-11-28).
type checklist struct {
	Title string `json:"title"`
	Tasks []struct {
		Text      string `json:"text"`
		Completed int64  `json:"completion_date"`
	} `json:"tasks"`
}

// describe describes the content in one line for the model; empty for plain
// text and service messages.
func (c *content) describe() string {
	switch {
	case c.Sticker != nil:
		return connectors.JoinLines(name(c.Sticker.Emoji), "[sticker]")
	case c.Location != nil && c.Venue == nil:
		return fmt.Sprintf("[location %.5f, %.5f]", c.Location.Latitude, c.Location.Longitude)
	case c.Venue != nil:
		v := c.Venue
		return fmt.Sprintf("[place %s, %s, at %.5f, %.5f]", name(v.Title), name(v.Address), v.Location.Latitude, v.Location.Longitude)
	case c.Contact != nil:
		return fmt.Sprintf("[contact %s, %s]", name(c.Contact.FirstName+" "+c.Contact.LastName), name(c.Contact.PhoneNumber))
	case c.Poll != nil:
		return c.poll()
	case c.Checklist != nil:
		return c.checklist()
	case c.Dice != nil:
		return fmt.Sprintf("[dice %s, shows %d]", name(c.Dice.Emoji), c.Dice.Value)
	}
	if media := c.media(); media != "" {
		return "[" + media + "]"
	}
	return c.other()
}

// media describes the file of a message.
func (c *content) media() string {
	switch {
	case len(c.Photo) > 0:
		p := c.Photo[len(c.Photo)-1] // the largest
		return fmt.Sprintf("photo %d x %d", p.Width, p.Height)
	case c.Animation != nil: // comes with a document as well
		return "animation" + file(c.Animation.FileName, c.Animation.FileSize)
	case c.Document != nil:
		return "document" + file(c.Document.FileName, c.Document.FileSize)
	case c.Voice != nil:
		return fmt.Sprintf("voice message, %d s", c.Voice.Duration)
	case c.Audio != nil:
		title := c.Audio.Title
		if title == "" {
			title = c.Audio.FileName
		}
		return "audio" + file(title, c.Audio.FileSize)
	case c.Video != nil:
		return fmt.Sprintf("video%s, %d s", file(c.Video.FileName, c.Video.FileSize), c.Video.Duration)
	case c.VideoNote != nil:
		return fmt.Sprintf("video message, %d s", c.VideoNote.Duration)
	}
	return ""
}

// other describes content that claybot recognizes but does not read.
func (c *content) other() string {
	kind := ""
	switch {
	case c.Game != nil:
		kind = "game"
	case c.Story != nil:
		kind = "story"
	case c.PaidMedia != nil:
		kind = "paid media"
	case c.Invoice != nil:
		kind = "invoice"
	case c.Giveaway != nil:
		kind = "giveaway"
	default:
		return ""
	}
	return "[" + kind + ": such messages cannot be read yet]"
}

func (c *content) poll() string {
	var b strings.Builder
	b.WriteString("[poll: " + name(c.Poll.Question))
	for _, o := range c.Poll.Options {
		b.WriteString(" / " + name(o.Text))
	}
	return b.String() + "]"
}

func (c *content) checklist() string {
	var b strings.Builder
	b.WriteString("[checklist: " + name(c.Checklist.Title))
	for i, t := range c.Checklist.Tasks {
		done := ""
		if t.Completed > 0 {
			done = " (done)"
		}
		if i < maxTasks {
			b.WriteString(" / " + name(t.Text) + done)
		}
	}
	return b.String() + "]"
}

func file(title string, size int) string {
	s := ""
	if title = name(title); title != "" {
		s = " " + title
	}
	switch {
	case size >= 1_000_000:
		s += fmt.Sprintf(", %.1f MB", float64(size)/1e6)
	case size >= 1000:
		s += fmt.Sprintf(", %d kB", (size+500)/1000)
	case size > 0:
		s += fmt.Sprintf(", %d bytes", size)
	}
	return s
}

// name makes untrusted text safe to show in one line between brackets.
func name(s string) string {
	return connectors.InBrackets(s, maxNameRunes)
}
