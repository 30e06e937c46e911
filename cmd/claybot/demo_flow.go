package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/examples"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/web"
)

// The people of the scene besides the owner, and the group in which workflows report.
const (
	flowCustomer = 7
	flowReader   = 1002
	flowTeam     = -1001
)

// alertsKey is the key of the secret with which alerts are signed, an obvious fake.
const alertsKey = "bm90LWEtcmVhbC1zZWNyZXQ="

// newsPage is where the example reads the news; the scene has a page of its own.
const newsPage = "https://example.org/news"

// flowScene plays the workflows of the folder examples on Telegram: each is started by a message, an alert
// or by hand, and people answer what they ask.
func flowScene() scene {
	return scene{
		name:      "flow",
		about:     "the workflows of the folder examples: a refund with approval, the news, an alert, a text that two people agree to, research",
		model:     flowModel,
		chats:     map[int64]string{flowCustomer: "customer", flowReader: "reader", flowTeam: "team"},
		vars:      map[string]string{"CLAYBOT_HTTP_ADDR": "127.0.0.1:0", "ALERTS_SECRET": "whsec_" + alertsKey},
		configure: unpackExamples,
		play: func(ctx context.Context, s *stage) error {
			p := flowPlay{s}
			for _, act := range []func(context.Context) error{p.inForce, p.greet, p.refund, p.news, p.alert, p.review, p.research} {
				if err := act(ctx); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// A flowPlay is the scene as it is played.
type flowPlay struct{ *stage }

// unpackExamples writes the examples beside the configuration file, which it returns.
func unpackExamples(_ context.Context, s *stage) (string, error) {
	page, stop, err := listenLocal(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("It rains. The river rises.")) // the reader may have left
	}))
	if err != nil {
		return "", err
	}
	s.stops = append(s.stops, stop)
	if err := os.CopyFS(s.dir, examples.Files); err != nil {
		return "", err
	}
	news := filepath.Join(s.dir, "flows", "news.yaml")
	text, err := os.ReadFile(news)
	if err != nil {
		return "", err
	}
	if !bytes.Contains(text, []byte(newsPage)) {
		return "", errors.New("the example reads the news elsewhere")
	}
	if err := os.WriteFile(news, bytes.ReplaceAll(text, []byte(newsPage), []byte(page+"/news")), 0o600); err != nil {
		return "", err
	}
	conf, err := examples.Files.ReadFile("claybot.yaml")
	return string(conf) + fmt.Sprintf("web: {private: [%q]}\naccess: {allow: [telegram:1001, telegram:%d, telegram:%d]}\n", strings.TrimPrefix(page, "http://"), flowCustomer, flowReader), err
}

// flowModel is the scripted model of the scene.
func flowModel(r openaitest.Request) openaitest.Reply {
	asked := r.LastUser()
	for _, x := range []struct{ asked, says string }{
		{"hello", "I am here."},
		{"Write a report", "Tea is from China, and some 5,000 years old."},
		{"What does the customer want?", `{"intent": "refund", "order": "1001"}`},
		{"The news in five lines", "It rains.\nThe river rises.\nThat is all."},
		{"Is this alert urgent?", `{"level": "urgent", "cause": "The disk is full"}`},
		{"Change it: warmer", "Dearest Ann, with love."},
		{"Write this text", "Dear Ann."},
		{"Take this question apart", `{"questions": ["Where is tea from?", "How old is it?"]}`},
		{"What is missing in these answers", "When it came to Europe."},
		{"Which of these statements are doubtful", "None."},
		{"Where is tea from?", "From China."},
		{"How old is it?", "Some 5,000 years."},
	} {
		if strings.Contains(asked, x.asked) {
			return openaitest.Reply{Text: x.says}
		}
	}
	return openaitest.Reply{Fault: openaitest.FaultBadRequest}
}

// inForce looks whether all workflows are.
func (s flowPlay) inForce(ctx context.Context) error {
	var list web.FlowList
	if err := s.client.call(ctx, "GET", "/flows", nil, &list); err != nil {
		return err
	}
	if len(list.Flows) < 5 || len(list.Faults) > 0 {
		return fmt.Errorf("%d workflows are in force; faults: %+v", len(list.Flows), list.Faults)
	}
	return nil
}

// from says what a person writes to the bot.
func (s flowPlay) from(person int64, text string) {
	s.said("telegram "+cmp.Or(s.chats[person], "owner"), text)
	s.telegram.Say(person, person, text)
}

// hears waits for a message with a text in a chat, behind those before.
func (s flowPlay) hears(ctx context.Context, chat int64, before int, text string) (telegramtest.Message, error) {
	for {
		all := s.telegram.Sent(chat)
		for _, m := range all[before:] {
			if strings.Contains(m.Text, text) {
				return m, nil
			}
		}
		if _, err := s.telegram.WaitSent(ctx, chat, len(all)+1); err != nil {
			return telegramtest.Message{}, fmt.Errorf("%d does not hear %q: %w", chat, text, err)
		}
	}
}

// decides presses a button of the question with a text.
func (s flowPlay) decides(ctx context.Context, person int64, before int, text, label string) error {
	m, err := s.hears(ctx, person, before, text)
	if err != nil {
		return err
	}
	s.said("telegram "+cmp.Or(s.chats[person], "owner"), "["+label+"]")
	query, ok := s.telegram.Press(person, person, m.ID, label)
	if !ok {
		return fmt.Errorf("the message %q has no button %s", m.Text, label)
	}
	_, err = s.telegram.WaitAnswer(ctx, query)
	return err
}

// greet lets the people write whom workflows ask, so that claybot knows where they are.
func (s flowPlay) greet(ctx context.Context) error {
	s.telegram.Title(flowTeam, "Team") // the bot is in this group
	for _, person := range []int64{telegramPerson, flowReader} {
		s.from(person, "hello")
		if _, err := s.hears(ctx, person, 0, "I am here."); err != nil {
			return err
		}
	}
	return nil
}

// refund plays the support desk.
func (s flowPlay) refund(ctx context.Context) error {
	before := len(s.telegram.Sent(telegramPerson))
	s.from(flowCustomer, "Please refund order 1001")
	if err := s.decides(ctx, telegramPerson, before, "how much to refund", "20"); err != nil {
		return err
	}
	if err := s.decides(ctx, telegramPerson, before, "refunds.md", "Approve"); err != nil {
		return err
	}
	_, err := s.hears(ctx, flowCustomer, 0, "refund of 20 euros")
	return err
}

// news plays the morning news, started by hand.
func (s flowPlay) news(ctx context.Context) error {
	s.say("operator $", "claybot flow run news")
	before := len(s.telegram.Sent(telegramPerson))
	if err := s.client.call(ctx, "POST", "/flows/news/runs", map[string]any{}, nil); err != nil {
		return err
	}
	_, err := s.hears(ctx, telegramPerson, before, "The river rises.")
	return err
}

// alert plays the alert of a monitoring program.
func (s flowPlay) alert(ctx context.Context) error {
	before := len(s.telegram.Sent(telegramPerson))
	body := []byte(`{"service": "shop", "text": "disk full"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.daemon.listeners.addr()+"/hooks/alerts", bytes.NewReader(body))
	if err != nil {
		return err
	}
	key, err := base64.StdEncoding.DecodeString(alertsKey)
	if err != nil {
		return err
	}
	stamp := fmt.Sprint(time.Now().Unix())
	sum := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(sum, "alert-1.%s.%s", stamp, body) // a hash takes everything
	req.Header.Set("Webhook-Id", "alert-1")
	req.Header.Set("Webhook-Timestamp", stamp)
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
	s.say("monitoring >", "POST /hooks/alerts %s", body)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("the alert got status %d", resp.StatusCode)
	}
	if err := s.decides(ctx, telegramPerson, before, "The disk is full", "Approve"); err != nil {
		return err
	}
	_, err = s.hears(ctx, flowTeam, 0, "taken care of")
	return err
}

// review plays the text that two people agree to.
func (s flowPlay) review(ctx context.Context) error {
	before, read := len(s.telegram.Sent(telegramPerson)), len(s.telegram.Sent(flowReader))
	s.from(telegramPerson, "review a letter to Ann")
	if err := s.decides(ctx, telegramPerson, before, "Dear Ann.", "Approve"); err != nil {
		return err
	}
	if err := s.decides(ctx, flowReader, read, "Dear Ann.", "Deny"); err != nil {
		return err
	}
	if _, err := s.hears(ctx, telegramPerson, before, "What should be different?"); err != nil {
		return err
	}
	s.from(telegramPerson, "warmer")
	if err := s.decides(ctx, telegramPerson, before, "Dearest Ann", "Approve"); err != nil {
		return err
	}
	before = len(s.telegram.Sent(telegramPerson))
	if err := s.decides(ctx, flowReader, read, "Dearest Ann", "Approve"); err != nil {
		return err
	}
	_, err := s.hears(ctx, telegramPerson, before, "Dearest Ann")
	return err
}

// research plays the question that several agents look into.
func (s flowPlay) research(ctx context.Context) error {
	before := len(s.telegram.Sent(telegramPerson))
	s.from(telegramPerson, "research the origin of tea")
	_, err := s.hears(ctx, telegramPerson, before, "5,000 years old")
	return err
}
