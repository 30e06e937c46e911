package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// openChats starts both platforms with n conversations each and returns the
// environment that leads the daemon to them. stop ends them.
func openChats(n int) (chats []*chat, env []string, stop func(), err error) {
	tg := telegramtest.New(telegramtest.Config{NoJournal: true})
	tgURL, err := tg.Start()
	if err != nil {
		return nil, nil, nil, err
	}
	sl := slacktest.New(slacktest.Config{})
	slURL, stopSlack, err := listen(sl)
	if err != nil {
		tg.Close()
		return nil, nil, nil, err
	}
	bot, _, _ := strings.Cut(telegramtest.Token, ":")
	for i := range n {
		chats = append(chats, telegramChat(tg, bot, int64(1001+i)), slackChat(sl, fmt.Sprintf("U%d", 1+i)))
	}
	env = []string{
		"TELEGRAM_BOT_TOKEN=" + telegramtest.Token, "TELEGRAM_API_URL=" + tgURL,
		"SLACK_BOT_TOKEN=xoxb-test", "SLACK_APP_TOKEN=xapp-test", "SLACK_API_URL=" + slURL + "/api/",
	}
	return chats, env, func() { tg.Close(); sl.Close(); stopSlack() }, nil
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

func slackChat(s *slacktest.Server, user string) *chat {
	return &chat{
		name: "slack " + user,
		say: func(text string) claybot.MessageID {
			channel, ts := s.DM(user, text)
			return claybot.MessageID("slack/T1/" + channel + "/" + ts)
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
