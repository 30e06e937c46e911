package main

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm"
)

// Where the threads of the crash rig are, and who writes in all of them.
const (
	threadChannel = "C1"
	threadUser    = "U1"
	threadGroup   = -1001000000001
	threadPerson  = 1001
	editEach      = 5 // so many messages of a thread, one is edited at once
)

// openThreads makes n conversations of one person on each platform: threads of a Slack channel,
// and topics of a Telegram group.
func (p *places) openThreads(n int) {
	bot, _, _ := strings.Cut(telegramtest.Token, ":")
	p.chats = nil
	for range n {
		p.chats = append(p.chats, slackThread(p.slack), telegramTopic(p.telegram, bot))
	}
}

func slackThread(s *slacktest.Server) *chat {
	root := s.Say("", threadChannel, threadUser, "a thread")
	said := 0
	return &chat{
		name: "slack thread " + root,
		say: func(text string) claybot.MessageID {
			said++
			text = "<@UBOT> " + text
			ts := s.Write(slacktest.Post{Channel: threadChannel, User: threadUser, Thread: root, Text: text, Mention: true, MentionFirst: said%2 == 0})
			if said%editEach == 0 {
				s.Edit(threadChannel, ts, text+" (edited)")
			}
			return claybot.MessageID("slack/T1/" + threadChannel + "/" + ts)
		},
		replies: func() []string {
			var texts []string
			for _, m := range s.Posted(threadChannel) {
				if m.Thread == root {
					texts = append(texts, m.Text)
				}
			}
			return texts
		},
	}
}

func telegramTopic(s *telegramtest.Server, bot string) *chat {
	topic := s.AddTopic(threadGroup)
	said := 0
	return &chat{
		name: fmt.Sprint("telegram topic ", topic), mayDouble: true,
		say: func(text string) claybot.MessageID {
			said++
			text = "@claybot " + text
			update, message := s.Write(telegramtest.Incoming{ChatID: threadGroup, UserID: threadPerson, ThreadID: topic, Text: text})
			if said%editEach == 0 {
				s.EditText(threadGroup, message, text+" (edited)")
			}
			return claybot.MessageID(fmt.Sprintf("telegram/%s/%d", bot, update))
		},
		replies: func() []string {
			var texts []string
			for _, m := range s.Sent(threadGroup) {
				if m.ThreadID == topic {
					texts = append(texts, m.Text)
				}
			}
			return texts
		},
	}
}

// strays counts the replies in a chat to messages of others.
func (v *verdict) strays(c *chat) {
	own := make(map[string]bool)
	for _, s := range c.said {
		own[s.marker] = true
	}
	for m := range c.counts() {
		if !own[m] {
			v.strayed++
			v.story("%s: the reply to %s belongs to another chat", c.name, m)
		}
	}
}

// A memory counts the requests to the model that hold messages of several chats.
type memory struct {
	requests, shared atomic.Int64
}

func (n *memory) String() string {
	return fmt.Sprintf("%d requests, %d with messages of several conversations", n.requests.Load(), n.shared.Load())
}

func (n *memory) look(messages []llm.Message) {
	n.requests.Add(1)
	first := ""
	for _, m := range messages {
		for _, found := range marker.FindAllString(m.Content, -1) {
			of, _, _ := strings.Cut(found, "-")
			if first == "" {
				first = of
			}
			if of != first {
				n.shared.Add(1)
				return
			}
		}
	}
}
