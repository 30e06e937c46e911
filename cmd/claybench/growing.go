package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

const growingHeading = "\n## Answers that grow\n"

// The answers that grow at once: so many words, one in each gap.
const (
	slackGrowing    = 20
	telegramGrowing = 30
	growingWords    = 180
	growingGap      = 500 * time.Millisecond
	growingApart    = 100 * time.Millisecond // between two people's messages
	growingLimit    = 5 * time.Minute        // all have ended
)

// A growth is the answer to one person.
type growth struct{ modelEnds, shown time.Time }

// A garden lets answers to many people grow at once on one platform.
type garden struct {
	name    string
	people  int
	seconds float64 // that the allowed calls are for
	allowed float64
	env     []string
	say     func(person int, text string)
	calls   func() []growCall

	mu      sync.Mutex
	growths map[string]*growth
}

// A growCall is a call that showed text, or was refused.
type growCall struct {
	at      time.Time
	text    string
	edit    bool
	refused bool
}

// growing measures how soon final texts are shown while many answers grow, and writes the
// results into the report.
func growing(ctx context.Context, o options, dir string) error {
	var t table
	for _, open := range []func() (*garden, func(), error){slackGarden, telegramGarden} {
		g, closePlace, err := open()
		if err != nil {
			return err
		}
		err = g.grow(ctx, o, dir, &t)
		closePlace()
		if err != nil {
			return fmt.Errorf("%s: %w", g.name, err)
		}
	}
	fmt.Print(t.markdown())
	if o.out == "" {
		return nil
	}
	text := fmt.Sprintf(`
The last run of `+"`make bench-growing`"+`. The real binary; %d people on Slack's emulator and %d on Telegram's
are answered at once, and each answer grows by a word each %v for %v. Both emulators refuse calls above the documented limits: %d
edits a minute of a workspace, %d messages and edits a second of a bot. The final text is late by the time between the last
word of the model and the call that shows it. What is used of the limit are edits, from the first to the last final text.

Conditions: %s, %s/%s, %d processors, %s.

%s`, slackGrowing, telegramGrowing, growingGap, growingWords*growingGap, slackEdits, telegramSends,
		time.Now().UTC().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), t.markdown())
	return writeSection(o.out, text, growingHeading)
}

// The documented limits: calls of chat.update a minute, sends and edits a second.
const (
	slackEdits    = 50
	telegramSends = 30
)

func slackGarden() (*garden, func(), error) {
	s := slacktest.New(slacktest.Config{Manifest: slack.Manifest})
	url, stop, err := listen(s)
	if err != nil {
		return nil, nil, err
	}
	return &garden{
		name: "Slack", people: slackGrowing, seconds: time.Minute.Seconds(), allowed: slackEdits,
		env: []string{"SLACK_BOT_TOKEN=xoxb-test", "SLACK_APP_TOKEN=xapp-test", "SLACK_API_URL=" + url + "/api/"},
		say: func(person int, text string) { s.DM(fmt.Sprint("U", 100+person), text) },
		calls: func() (all []growCall) {
			for _, c := range s.Journal() {
				if c.Method == "chat.update" || c.Method == "chat.postMessage" {
					all = append(all, growCall{c.At, c.Form.Encode(), c.Method == "chat.update", c.Status == http.StatusTooManyRequests})
				}
			}
			return all
		},
	}, func() { s.Close(); stop() }, nil
}

func telegramGarden() (*garden, func(), error) {
	s := telegramtest.New(telegramtest.Config{})
	url, err := s.Start()
	if err != nil {
		return nil, nil, err
	}
	return &garden{
		name: "Telegram", people: telegramGrowing, seconds: 1, allowed: telegramSends,
		env: []string{"TELEGRAM_BOT_TOKEN=" + telegramtest.Token, "TELEGRAM_API_URL=" + url},
		say: func(person int, text string) { s.Say(int64(1001+person), int64(1001+person), text) },
		calls: func() (all []growCall) {
			for _, e := range s.Journal("") {
				if edit := e.Method == "editmessagetext"; edit || e.Method == "sendmessage" {
					all = append(all, growCall{e.At, e.Params, edit, e.Status == http.StatusTooManyRequests})
				}
			}
			return all
		},
	}, s.Close, nil
}

// reply answers with a text that grows and ends with a mark of the person.
func (g *garden) reply(r openaitest.Request) openaitest.Reply {
	fields := strings.Fields(r.LastUser())
	if len(fields) == 0 {
		return openaitest.Echo(r)
	}
	mark := fields[len(fields)-1]
	text := strings.Repeat("growing ", growingWords-1) + "end" + mark
	g.mu.Lock()
	w := new(growth)
	g.growths[mark] = w
	g.mu.Unlock()
	return openaitest.Reply{Text: text, Piece: len("growing "), Gap: growingGap, Ended: func() {
		g.mu.Lock()
		w.modelEnds = time.Now()
		g.mu.Unlock()
	}}
}

func (g *garden) grow(ctx context.Context, o options, dir string, t *table) error {
	g.growths = make(map[string]*growth)
	room := filepath.Join(dir, g.name)
	if err := os.Mkdir(room, 0o700); err != nil {
		return err
	}
	model, stopModel, err := openaitest.New(openaitest.Config{Reply: g.reply, Keep: 1}).Start()
	if err != nil {
		return err
	}
	defer stopModel()
	p, err := start(ctx, o.bin, room, append(g.env, "OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+model)...)
	if err != nil {
		return err
	}
	if err := p.waitReady(readyLimit); err != nil {
		return errors.Join(err, p.kill())
	}
	for i := range g.people {
		g.say(i, fmt.Sprintf("please grow g%dg", i))
		pause(ctx, growingApart)
	}
	for deadline := time.Now().Add(growingLimit); !g.ended(); {
		if time.Now().After(deadline) {
			return errors.Join(errors.New("some answers never ended"), p.kill())
		}
		if !pause(ctx, 100*time.Millisecond) {
			return errors.Join(context.Cause(ctx), p.kill())
		}
	}
	g.report(t)
	return p.term()
}

// ended notes which final texts are shown, and reports whether all are.
func (g *garden) ended() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.calls() {
		_, after, found := strings.Cut(c.text, "endg")
		if c.refused || !found {
			continue
		}
		number, _, _ := strings.Cut(after, "g")
		if w := g.growths["g"+number+"g"]; w != nil && w.shown.IsZero() {
			w.shown = c.at
		}
	}
	for _, w := range g.growths {
		if w.shown.IsZero() || w.modelEnds.IsZero() {
			return false
		}
	}
	return len(g.growths) == g.people
}

// report adds what was measured to the table.
func (g *garden) report(t *table) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var late []time.Duration
	var last time.Time
	for _, w := range g.growths {
		late = append(late, max(0, w.shown.Sub(w.modelEnds)))
		if w.shown.After(last) {
			last = w.shown
		}
	}
	slices.Sort(late)
	var from time.Time
	edits, refused := 0, 0
	for _, c := range g.calls() {
		switch {
		case c.refused:
			refused++
		case c.edit && !c.at.After(last):
			if from.IsZero() {
				from = c.at
			}
			edits++
		}
	}
	used := float64(edits) / (last.Sub(from).Seconds() / g.seconds * g.allowed)
	who := fmt.Sprintf("%d people on %s", g.people, g.name)
	t.add(who+": final text late by, median", late[len(late)/2].Seconds(), "s", 0, "<= 1 s")
	t.add(who+": final text late by, worst", late[len(late)-1].Seconds(), "s", 0, "<= 3 s")
	t.add(who+": used of the allowed rate", 100*used, "%", 0, ">= 90 %")
	t.add(who+": calls refused", float64(refused), "", 0, "")
}
