package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// places are the emulated platforms with their conversations.
type places struct {
	telegram  *telegramtest.Server
	slack     *slacktest.Server
	stopSlack func()
	discord   *discordtest.Server // nil: none
	met       chan struct{}       // closed once Discord knows its bot
	chats     []*chat
	env       []string // leads the daemon there
}

// openPlaces starts both platforms with n conversations each.
func openPlaces(n int) (*places, error) {
	p := &places{telegram: telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true}), slack: slacktest.New(slacktest.Config{Manifest: slack.Manifest, PerMinute: noTiers, PostEvery: -1})}
	if err := p.open(); err != nil {
		return nil, err
	}
	bot, _, _ := strings.Cut(telegramtest.Token, ":")
	for i := range n {
		p.chats = append(p.chats, telegramChat(p.telegram, bot, int64(1001+i)), slackChat(p.slack, "slack", fmt.Sprintf("U%d", 1+i)))
	}
	return p, nil
}

// open starts the platforms and sets env.
func (p *places) open() error {
	tgURL, err := p.telegram.Start()
	if err != nil {
		return err
	}
	slURL, stop, err := listen(p.slack)
	if err != nil {
		p.telegram.Close()
		return err
	}
	p.stopSlack = stop
	p.env = []string{
		"TELEGRAM_BOT_TOKEN=" + telegramtest.Token, "TELEGRAM_API_URL=" + tgURL,
		"SLACK_BOT_TOKEN=xoxb-test", "SLACK_APP_TOKEN=xapp-test", "SLACK_API_URL=" + slURL + "/api/",
	}
	return nil
}

// push makes Slack send requests, and again what was not taken, after what came later.
func (p *places) push(hook string) {
	p.slack.Push(hook, hookSecret, nil)
	for _, c := range p.chats {
		c.loose = strings.HasPrefix(c.name, "slack ")
	}
}

// pending is how many messages the daemon has not confirmed to the platforms.
func (p *places) pending() int { return len(p.telegram.Pending()) + len(p.slack.Unacked()) }

func (p *places) close() {
	p.telegram.Close()
	p.slack.Close()
	p.stopSlack()
	if p.discord != nil {
		p.discord.Close()
	}
}

// openDiscord adds Discord with n direct chats. Its limits give way, as those of the others: a session
// outlives a daemon that takes long to start.
func (p *places) openDiscord(n int) error {
	p.discord = discordtest.New(discordtest.Config{Heartbeat: time.Second, Keep: 2 * slowReady, Sessions: 1_000_000, Sends: 1_000_000, Requests: 1_000_000})
	url, err := p.discord.Start()
	if err != nil {
		return err
	}
	p.env = append(p.env, "DISCORD_BOT_TOKEN="+discordtest.Token, "DISCORD_API_URL="+url)
	p.met = make(chan struct{})
	for i := range n {
		p.chats = append(p.chats, discordChat(p.discord, p.met, fmt.Sprint(400000000000000001+i), fmt.Sprint(200000000000000001+i)))
	}
	return nil
}

// meet waits until the bot of Discord has stored a session, so that it can resume, and opens the chats
// there: Discord keeps nothing for a bot that was never there. Heartbeats show what is stored, of an
// event that means nothing else.
func (p *places) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, slowReady, fmt.Errorf("the bot of Discord has no session after %v", slowReady))
	defer cancel()
	for seen := 0; !p.discord.Kept(); {
		if sessions, _ := p.discord.Sessions(); sessions > seen {
			seen = sessions
			p.discord.Dispatch("TYPING_START", map[string]any{})
		}
		if !pause(ctx, lookAgain) {
			return context.Cause(ctx)
		}
	}
	close(p.met)
	return nil
}

func telegramChat(s *telegramtest.Server, bot string, user int64) *chat {
	return &chat{
		name: fmt.Sprintf("telegram %d", user), mayDouble: true,
		say: func(text string) claybot.MessageID {
			return claybot.MessageID(fmt.Sprintf("telegram/%s/%d", bot, s.Say(user, user, text)))
		},
		replies: func() []string {
			var texts []string
			for _, m := range s.Sent(user) {
				texts = append(texts, m.Text)
			}
			return texts
		},
	}
}

// lookAgain is the pause between two looks for the first session of a bot.
const lookAgain = 50 * time.Millisecond

func discordChat(s *discordtest.Server, met <-chan struct{}, channel, user string) *chat {
	s.AddDirect(channel, user)
	return &chat{
		name: "discord " + user, met: met,
		say: func(text string) claybot.MessageID {
			return claybot.MessageID("discord/" + channel + "/" + s.Write(discordtest.Post{Channel: channel, User: user, Text: text}))
		},
		replies: func() []string {
			var texts []string
			for _, m := range s.Sent(channel) {
				texts = append(texts, m.Content)
			}
			return texts
		},
	}
}

// slackChat is a direct chat with the bot of a connector.
func slackChat(s *slacktest.Server, connector, user string) *chat {
	return &chat{
		name: "slack " + user,
		say: func(text string) claybot.MessageID {
			channel, ts := s.DM(user, text)
			return claybot.MessageID(connector + "/T1/" + channel + "/" + ts)
		},
		replies: func() []string {
			var texts []string
			for _, m := range s.Posted("D" + user) {
				texts = append(texts, m.Text)
			}
			return texts
		},
	}
}

// listen serves h on a free port of the loopback address.
func listen(h http.Handler) (url string, stop func(), err error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 0}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with Close
	}()
	return "http://" + l.Addr().String(), func() { _ = srv.Close(); <-done }, nil
}

// noTiers lifts the tiers of Slack's methods that the rigs call: the chats of the rigs write
// far more often than people do. With the limit of a channel as well, a rig would mostly wait
// for its last replies.
var noTiers = map[string]int{
	"apps.connections.open": 0, "auth.test": 0, "chat.update": 0, "conversations.history": 0, "conversations.list": 0, "conversations.replies": 0, "users.info": 0,
}
