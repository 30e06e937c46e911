package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"maps"
	"strings"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// workshop is a group on Telegram that has topics.
const workshop = -1001000000004

const telegramConfig = `access: {allow: ["telegram:1001", "telegram:-1001000000004"]}
telegram: {delivery: draft}
transcription: true
`

// A telegramPlay is the scene of what Telegram has beside messages.
type telegramPlay struct {
	seen chan struct{} // closed when the person saw the draft
}

func telegramScene() scene {
	p := &telegramPlay{seen: make(chan struct{})}
	return scene{
		name:   "telegram",
		about:  "two topics of a group, an album, a voice message, and a draft that grows",
		model:  p.model,
		config: telegramConfig, ordered: true,
		ready: func(s *stage) error {
			s.topics = map[int64]string{s.telegram.AddTopic(workshop): "glazes", s.telegram.AddTopic(workshop): "kiln"}
			return nil
		},
		play: inTurn(p.talk, p.album, p.voice, p.draft),
	}
}

func (p *telegramPlay) model(r openaitest.Request) openaitest.Reply {
	last, text, pictures := r.Messages[len(r.Messages)-1], r.LastUser(), 0
	for _, m := range r.Messages {
		pictures += len(m.Images)
	}
	switch {
	case strings.Contains(text, "what do you know"):
		return known(r)
	case len(last.Images) > 0:
		return openaitest.Reply{Text: fmt.Sprintf("I see %d pictures. The pot in the second one leans to the left.", pictures)}
	case strings.Contains(text, "voice message"):
		return openaitest.Reply{Text: "It is free on Friday. I heard: " + text}
	case strings.Contains(text, "how is a pot made"):
		return openaitest.Reply{Text: potBegins + potEnds, Piece: len(potBegins), Rest: p.seen}
	}
	return openaitest.Reply{Text: "Noted: " + text}
}

// talk shows two topics of a group, each with a memory of its own.
func (p *telegramPlay) talk(ctx context.Context, s *stage) error {
	topics := make(map[string]int64)
	for id, name := range s.topics {
		topics[name] = id
	}
	for _, a := range [][3]string{
		{"glazes", "the vases get a blue glaze", "Noted"},
		{"kiln", "what do you know?", "I know nothing here"},
		{"glazes", "what do you know?", "Here I know of: blue glaze"},
	} {
		before := len(s.telegram.Sent(workshop))
		s.said("telegram "+a[0], "Ann: @claybot "+a[1])
		s.telegram.Write(telegramtest.Incoming{ChatID: workshop, UserID: telegramPerson, ThreadID: topics[a[0]], Text: "@claybot " + a[1]})
		m, err := s.seen(ctx, workshop, before, says(a[2]))
		if err != nil {
			return fmt.Errorf("no %q in the topic %s: %w", a[2], a[0], err)
		}
		s.onTelegram(m)
		if m.ThreadID != topics[a[0]] {
			return fmt.Errorf("the answer to %s is in the topic %s", a[0], s.topics[m.ThreadID])
		}
	}
	return nil
}

// write lets the person send something in the direct chat, and waits for the answer.
func (p *telegramPlay) write(ctx context.Context, s *stage, want string, all ...telegramtest.Incoming) error {
	before := len(s.telegram.Sent(telegramPerson))
	for _, in := range all {
		in.ChatID, in.UserID = telegramPerson, telegramPerson
		s.telegram.Write(in)
	}
	m, err := s.seen(ctx, telegramPerson, before, says(want))
	if err != nil {
		return fmt.Errorf("no %q in the direct chat: %w", want, err)
	}
	s.onTelegram(m)
	return nil
}

// album shows two pictures that are one message.
func (p *telegramPlay) album(ctx context.Context, s *stage) error {
	part := func(name, caption string, size int) telegramtest.Incoming {
		var picture bytes.Buffer
		_ = jpeg.Encode(&picture, image.NewGray(image.Rect(0, 0, size, size)), nil) // a buffer takes all
		photo := s.telegram.AddFile(name, picture.Bytes())
		maps.Copy(photo, map[string]any{"width": size, "height": size})
		return telegramtest.Incoming{MediaGroup: "pots", Caption: caption, Fields: map[string]any{"photo": []any{photo}}}
	}
	before := s.model.Calls()
	s.said("telegram", "Ann: [pot-1.jpg] [pot-2.jpg] which of them is straight?")
	if err := p.write(ctx, s, "I see 2 pictures", part("pot-1.jpg", "which of them is straight?", 8), part("pot-2.jpg", "", 9)); err != nil {
		return err
	}
	if n := s.model.Calls() - before; n != 1 {
		return fmt.Errorf("the album took %d model calls", n)
	}
	return nil
}

// voice shows a voice message.
func (p *telegramPlay) voice(ctx context.Context, s *stage) error {
	const words = "when is the kiln free?"
	s.model.ScriptAudio(openaitest.Reply{Text: words})
	voice := s.telegram.AddFile("voice.oga", []byte("OggS: not a recording"))
	maps.Copy(voice, map[string]any{"duration": 3, "mime_type": "audio/ogg"})
	s.said("telegram", "Ann: [voice message, 0:03]")
	return p.write(ctx, s, words, telegramtest.Incoming{Fields: map[string]any{"voice": voice}})
}

// draft shows an answer that grows as a draft. The complete one is a message that was never edited.
func (p *telegramPlay) draft(ctx context.Context, s *stage) error {
	before := len(s.telegram.Sent(telegramPerson))
	s.said("telegram", "Ann: how is a pot made?")
	s.telegram.Say(telegramPerson, telegramPerson, "how is a pot made?")
	var draft telegramtest.Draft
	begun := strings.TrimSpace(potBegins)
	err := poll(ctx, func() (bool, error) {
		draft, _ = s.telegram.Draft(telegramPerson)
		return strings.TrimSpace(draft.Text) == begun, nil
	})
	if err != nil {
		return fmt.Errorf("the answer is no draft, but %q: %w", draft.Text, err)
	}
	s.heard("telegram draft", begun+" …")
	close(p.seen)
	m, err := s.seen(ctx, telegramPerson, before, says(potEnds))
	if err != nil {
		return fmt.Errorf("the draft becomes no message: %w", err)
	}
	s.onTelegram(m)
	if m.Text != potBegins+potEnds || m.Edits > 0 || len(s.telegram.Sent(telegramPerson)) != before+1 {
		return errors.New("the answer is not one message that was never edited")
	}
	return s.quiet(ctx)
}
