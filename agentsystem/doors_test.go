package agentsystem_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/connectorstest"
	"github.com/claybot/claybot/connectors/discord"
	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/connectors/webchat"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
)

// A probe is what a message of a kind tries.
type probe string

const (
	tryCommand probe = "command"
	tryApprove probe = "approval"
	tryYes     probe = "yes" // approves in words
	tryAnswer  probe = "answer"
)

// kinds are all kinds of messages. Each connector says of each what becomes of it.
var kinds = []string{
	"typed", "typed in a group", "reply to a command", "slash command", "button", "form", "caption of a file", "voice message", "forwarded voice message", "quoted text", "forwarded",
	"written by a bot for the person", "scheduled or automatic", "edited", "bot", "anonymous administrator", "post of a channel", "guest in an allowed channel",
	"user of another workspace",
}

// What becomes of a message: nothing of it is stored; it reaches the agent as text; it only
// answers a plain question; or what it commands, approves and answers happens.
const (
	dropped = "ignored"
	asText  = "text"
	answers = "answers"
	acts    = "acts"
	absent  = "—" // the platform has no such messages
)

// A stage is a system with the real connectors, whose platforms are emulated.
type stage struct {
	*rig
	telegram *telegramtest.Server
	tg       *telegram.Connector
	slack    *slacktest.Server
	sl       *slack.Connector
	discord  *discordtest.Server
	dc       *discord.Connector
	web      http.Handler

	at       claybot.Descriptor // whose agent asks
	question claybot.Question
	earlier  int64  // message of the person, in Telegram
	heard    string // the same, in Discord

	noted  sync.Mutex
	posted []claybot.AgentMessage
}

// A watched handler notes what connectors post.
type watched struct {
	connectors.Handler
	s *stage
}

func (h watched) Post(ctx context.Context, to claybot.Descriptor, m claybot.AgentMessage) error {
	h.s.noted.Lock()
	h.s.posted = append(h.s.posted, m)
	h.s.noted.Unlock()
	return h.Handler.Post(ctx, to, m)
}

type watchedTelegram struct {
	*telegram.Connector
	s *stage
}

func (c watchedTelegram) Run(ctx context.Context, h connectors.Handler) error {
	return c.Connector.Run(ctx, watched{h, c.s})
}

type watchedSlack struct {
	*slack.Connector
	s *stage
}

func (c watchedSlack) Run(ctx context.Context, h connectors.Handler) error {
	return c.Connector.Run(ctx, watched{h, c.s})
}

type watchedDiscord struct {
	*discord.Connector
	s *stage
}

func (c watchedDiscord) Run(ctx context.Context, h connectors.Handler) error {
	return c.Connector.Run(ctx, watched{h, c.s})
}

type watchedWeb struct {
	*webchat.Chat
	s *stage
}

func (c watchedWeb) Run(ctx context.Context, h connectors.Handler) error {
	return c.Chat.Run(ctx, watched{h, c.s})
}

// webFiles are the files of the page.
type webFiles struct {
	webchat.Transcripts
	webchat.Files
	*rig
}

func (f webFiles) Receipt(ctx context.Context, id claybot.MessageID) (storage.Receipt, error) {
	return f.db.Receipt(ctx, id)
}

func (webFiles) Attached(context.Context, claybot.Descriptor, string) (claybot.FileReference, io.ReadCloser, error) {
	return claybot.FileReference{ID: "f1", Name: "a.txt", MIMEType: "text/plain", Path: "a.txt"}, io.NopCloser(strings.NewReader("a")), nil
}

// withAsk is the manifest with a command that an operator added.
var withAsk = strings.Replace(slack.Manifest, "    - command: /claybot\n", "    - command: /ask\n      description: Ask\n    - command: /claybot\n", 1)

const tgGroup = -1000000000001

// Of Discord: a server, a channel of it, a direct chat and its user.
const (
	dcGuild, dcChannel, dcDirect, dcUser = "300000000000000001", "500000000000000001", "400000000000000001", "200000000000000001"
)

// onStage runs a test with all connectors.
func onStage(t *testing.T, said string, test func(s *stage)) {
	t.Helper()
	bubble(t, func(r *rig) {
		s := &stage{rig: r, telegram: telegramtest.New(telegramtest.Config{}), slack: slacktest.New(slacktest.Config{Manifest: withAsk})}
		transport, pipe := s.telegram.Transport(), connectorstest.NewPipe()
		httpd := &http.Server{Handler: s.slack, ReadHeaderTimeout: time.Minute}
		var serving sync.WaitGroup
		serving.Go(func() { _ = httpd.Serve(pipe) }) // ends with the listener
		slackTransport := &http.Transport{DialContext: pipe.Dial}
		s.discord = discordtest.New(discordtest.Config{})
		s.discord.AddChannel(dcGuild, dcChannel)
		s.discord.AddDirect(dcDirect, dcUser)
		discordPipe := connectorstest.NewPipe()
		discordHTTP := &http.Server{Handler: s.discord, ReadHeaderTimeout: time.Minute}
		serving.Go(func() { _ = discordHTTP.Serve(discordPipe) }) // ends with the listener
		discordTransport := &http.Transport{DialContext: discordPipe.Dial}
		defer func() {
			r.shut()
			s.telegram.Close()
			s.slack.Close()
			transport.CloseIdleConnections()
			slackTransport.CloseIdleConnections()
			_ = httpd.Close()
			s.discord.Close()
			discordTransport.CloseIdleConnections()
			_ = discordHTTP.Close()
			serving.Wait()
		}()
		s.tg = telegram.New(telegram.Config{Token: telegramtest.Token, BaseURL: "http://telegram.test", HTTP: transport})
		s.sl = slack.New(slack.Config{BotToken: "xoxb-test", AppToken: "xapp-test", APIURL: "http://slack.test/api", HTTP: slackTransport, Dial: pipe.Dial})
		s.dc = discord.New(discord.Config{Token: discordtest.Token, BaseURL: "http://discord.test/api/v10", HTTP: discordTransport, Dial: discordPipe.Dial})
		chat := webchat.New(webchat.Config{})
		s.web = chat.Handler(webFiles{rig: r}, webFiles{rig: r}, func(*http.Request) string { return "operator" })
		r.also = []connectors.Connector{watchedTelegram{s.tg, s}, watchedSlack{s.sl, s}, watchedDiscord{s.dc, s}, watchedWeb{chat, s}}
		r.engine = engineFunc(asks)
		r.access = people.Access{
			Mode: people.AccessAllowlist, Trusted: []string{"chat", "web"},
			Allow: []string{"telegram:7", "telegram:" + strconv.Itoa(tgGroup), "slack:U1", "slack:T1/C1", "discord:" + dcUser, "discord:" + dcChannel},
		}
		r.transcribe = func(context.Context, claybot.Run, claybot.FileReference, func() (io.ReadCloser, error)) (llm.Speech, error) {
			return llm.Speech{Text: said, Model: "test"}, nil
		}
		s.slack.SetUser(slacktest.User{ID: "U5", Restricted: true})
		r.start()
		test(s)
	})
}

// quiet waits until all connectors, deliveries and runs have done their work.
func (s *stage) quiet() {
	synctest.Wait()
	time.Sleep(20 * time.Second)
	synctest.Wait()
}

// page posts to the page.
func (s *stage) page(body string) { s.call(http.MethodPost, "/messages", body) }

// pageEdit changes a message of the page.
func (s *stage) pageEdit(id, body string) { s.call(http.MethodPatch, "/messages/"+id, body) }

func (s *stage) call(method, path, body string) {
	s.Helper()
	rw := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	s.web.ServeHTTP(rw, r)
	if rw.Code != http.StatusAccepted {
		s.Fatalf("the page answers %d %s", rw.Code, rw.Body)
	}
}

// asked is the platform's id of the message that asks.
func (s *stage) asked() string {
	s.Helper()
	o, err := s.db.OutgoingByID(s.Context(), "question/"+s.question.ID+"/1")
	if err != nil || o.Receipt == "" {
		s.Fatalf("the question was not sent: %+v, %v", o, err)
	}
	return o.Receipt
}

// offer sends a message with the button of a command.
func (s *stage) offer(send func(context.Context, claybot.Outgoing) (string, error), command string) string {
	s.Helper()
	receipt, err := send(s.Context(), claybot.Outgoing{
		ID: "offer", Kind: claybot.OutgoingAnswer, Route: s.at.Route(), Text: "Done.", Part: 1, Parts: 1,
		Offer: []claybot.Offer{{Label: "Go", Command: command}},
	})
	if err != nil {
		s.Fatal(err)
	}
	return receipt
}

// outcome lets one message of a kind try one thing, and returns what became of it.
func (d doorway) outcome(t *testing.T, kind string, e entry, try probe) (became string) {
	text := map[probe]string{tryCommand: d.command, tryApprove: strings.Replace(d.command, "status", "approve", 1), tryYes: "yes", tryAnswer: "yes"}[try]
	onStage(t, text, func(s *stage) {
		s.at = d.direct
		if e.group {
			s.at = d.group
		}
		d.hello(s, e.group)
		s.quiet()
		if try != tryCommand {
			asked := payment("Sure?")
			if try == tryAnswer {
				asked = askedFor{Question: claybot.Question{Key: "Sure?", Text: "Sure?", Type: claybot.QuestionBoolean, Required: true}, Wait: time.Hour}
				if kind == "form" {
					asked.Question.Type = claybot.QuestionText
				}
			}
			s.question = s.asksFor(s.at, "ask", asked)["Sure?"]
			s.quiet()
		}
		s.noted.Lock()
		s.posted = nil
		s.noted.Unlock()
		e.act(s, try, text)
		s.quiet()
		became = dropped
		for _, m := range s.posted {
			r, err := s.db.Receipt(s.Context(), m.ID)
			switch {
			case err != nil:
			case r.Message.Type == claybot.MessageEdit: // it changes an earlier message, and is none itself
			case r.Message.Type == claybot.MessageCommand && try == tryCommand:
				became = acts
			default:
				became = asText
			}
		}
		if try == tryCommand {
			return
		}
		if said := s.saidTo(s.question); strings.HasPrefix(said, "true") || kind == "form" && said != "" {
			became = acts
		}
	})
	return became
}

// TestDoors tries every kind of message on every connector, and compares what becomes of it
// with the table here and in docs/security.md.
func TestDoors(t *testing.T) {
	t.Parallel()
	folders, err := os.ReadDir("../connectors")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if _, ok := doorways[f.Name()]; f.IsDir() && !ok && f.Name() != "connectorstest" {
			t.Errorf("the connector %s has no entry in doorways", f.Name())
		}
	}
	for name, d := range doorways {
		for _, kind := range slices.Sorted(maps.Keys(d.entries)) {
			if !slices.Contains(kinds, kind) {
				t.Errorf("%s: unknown kind %q", name, kind)
			}
		}
		for _, kind := range kinds {
			e, ok := d.entries[kind]
			switch {
			case !ok && d.platform:
				t.Errorf("%s: no entry for %q", name, kind)
			case e.act == nil:
				if e.want != absent && d.platform {
					t.Errorf("%s, %s: nothing tries it", name, kind)
				}
			default:
				t.Run(name+"/"+kind, func(t *testing.T) {
					t.Parallel()
					for _, try := range []probe{tryCommand, tryApprove, tryYes, tryAnswer} {
						if slices.Contains(e.never, try) {
							continue
						}
						want := e.want
						if want == answers {
							if want = asText; try == tryAnswer {
								want = acts
							}
						}
						if got := d.outcome(t, kind, e, try); got != want {
							t.Errorf("%s: %s, want %s", try, got, want)
						}
					}
				})
			}
		}
	}
	var table bytes.Buffer
	table.WriteString("| the message | Telegram | Slack | Discord | page and terminal |\n|---|---|---|---|---|\n")
	for _, kind := range kinds {
		fmt.Fprintf(&table, "| %s |", kind)
		for _, name := range []string{"telegram", "slack", "discord", "webchat"} {
			fmt.Fprintf(&table, " %s |", doorways[name].entries[kind].want)
		}
		table.WriteString("\n")
	}
	doc, err := os.ReadFile("../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(doc, table.Bytes()) {
		t.Errorf("docs/security.md does not have this table:\n%s", &table)
	}
}
