package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// A loopScene is one way in which the daemon dies in a row.
type loopScene struct {
	name    string
	people  int           // who write a message each
	thought time.Duration // until the model answers
	kills   int           // from outside, one each killEvery
	poison  int           // messages that kill the daemon when the model is asked about them
	memory  int64         // the most that the daemon may have, in bytes; 0: no limit
	deaths  int           // that are allowed besides the kills
	limit   time.Duration // for the answers, without any kill from outside
}

// killEvery is how long the daemon lives between kills from outside, on average.
const killEvery = time.Second

// loopScenes are the sizes of the issue that asked for them.
func loopScenes() []loopScene {
	return []loopScene{
		{name: "kills", people: 150, thought: 3 * time.Second, kills: 20, limit: 10 * time.Minute},
		{name: "poison", people: 151, poison: 1, thought: time.Second, deaths: 10, limit: 10 * time.Minute},
		{name: "crowd", people: 4001, poison: 1, thought: 2 * time.Second, deaths: 10, limit: 30 * time.Minute},
		{name: "memory", people: 4000, thought: 8 * time.Second, memory: 72 << 20, deaths: 1000, limit: 30 * time.Minute},
	}
}

// crashLoop lets the daemon die in a row, each way on a directory of its own, and
// requires that everybody is answered but those whose message kills it, and that
// these are told once.
func crashLoop(ctx context.Context, o options, dir string) error {
	var all error
	for _, s := range loopScenes() {
		if o.scene != "" && !slices.Contains(strings.Split(o.scene, ","), s.name) {
			continue
		}
		home := filepath.Join(dir, s.name)
		if err := os.Mkdir(home, 0o700); err != nil {
			return err
		}
		r, err := s.play(ctx, o, home)
		if r != nil {
			fmt.Println(r)
		}
		if err == nil {
			err = r.check()
		}
		if err != nil {
			all = errors.Join(all, fmt.Errorf("%s: %w", s.name, err))
		}
	}
	return all
}

// A loopResult is what came of a scene.
type loopResult struct {
	scene                              loopScene
	deaths                             int // besides the kills
	answered, unanswered, twice, spare int // innocents
	told                               []int
	took                               time.Duration
	log                                string
}

func (r *loopResult) String() string {
	return fmt.Sprintf("crash loop %q: %d kills from outside, %d other deaths; of %d innocents %d answered, %d without an answer, %d given up, %d answered twice; notices to those who killed it: %v; %v",
		r.scene.name, r.scene.kills, r.deaths, r.scene.people-r.scene.poison, r.answered, r.unanswered, r.spare, r.twice, r.told, r.took.Round(time.Second))
}

func (r *loopResult) check() error {
	switch {
	case r.unanswered+r.spare > 0:
		return fmt.Errorf("%d innocent messages have no answer\n%s", r.unanswered+r.spare, r.log)
	case r.deaths > r.scene.deaths:
		return fmt.Errorf("the daemon died %d times, want at most %d", r.deaths, r.scene.deaths)
	case slices.ContainsFunc(r.told, func(n int) bool { return n != 1 }):
		return fmt.Errorf("notices to those who killed it: %v, want one each", r.told)
	}
	return nil
}

// A loopRig plays one scene.
type loopRig struct {
	loopScene
	bin, dir string
	env      []string
	tg       *telegramtest.Server

	mu   sync.Mutex
	proc *process // that lives
}

func (s loopScene) play(ctx context.Context, o options, dir string) (*loopResult, error) {
	r := &loopRig{loopScene: s, bin: o.bin, dir: dir, tg: telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true})}
	model := openaitest.New(openaitest.Config{Reply: r.reply, Keep: 1})
	modelURL, stopModel, err := model.Start()
	if err != nil {
		return nil, err
	}
	defer stopModel()
	tgURL, err := r.tg.Start()
	if err != nil {
		return nil, err
	}
	defer r.tg.Close()
	r.env = []string{
		"TELEGRAM_BOT_TOKEN=" + telegramtest.Token, "TELEGRAM_API_URL=" + tgURL,
		"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL=" + modelURL,
	}
	if s.memory > 0 {
		cage, remove, err := newCage(dir, o.bin, s.memory)
		if err != nil {
			return nil, fmt.Errorf("limit the memory: %w", err)
		}
		defer remove()
		r.bin = cage
	}
	for i := range s.people {
		r.tg.Say(chatID(i), chatID(i), r.text(i))
	}
	return r.run(ctx)
}

func chatID(i int) int64 { return int64(1001 + i) }

// text is what the i-th person writes. Those who kill the daemon stand in the middle.
func (r *loopRig) text(i int) string {
	if r.isPoison(i) {
		return fmt.Sprintf("poison m%d-1", i)
	}
	return fmt.Sprintf("please answer m%d-1", i)
}

func (r *loopRig) isPoison(i int) bool {
	first := r.people / 3
	return i >= first && i < first+r.poison
}

// reply answers as the model, or kills the daemon.
func (r *loopRig) reply(q openaitest.Request) openaitest.Reply {
	text := ""
	if len(q.Messages) > 0 {
		text = llm.Unwrap(q.Messages[len(q.Messages)-1].Content)
	}
	if strings.Contains(text, "poison") {
		r.mu.Lock()
		p := r.proc
		r.mu.Unlock()
		time.Sleep(upTo(r.thought))
		if p != nil {
			_ = p.kill() // it may be dead already
		}
		return openaitest.Reply{Fault: openaitest.FaultCut}
	}
	return openaitest.Reply{Text: "re " + strings.Join(marker.FindAllString(text, -1), " "), Delay: r.thought/2 + upTo(r.thought)}
}

// run keeps the daemon up, as a service manager does, until everybody has heard.
func (r *loopRig) run(ctx context.Context) (*loopResult, error) {
	res := &loopResult{scene: r.loopScene}
	began := time.Now()
	life := ctx
	ctx, cancel := context.WithTimeout(ctx, r.limit+time.Duration(r.kills)*killEvery*2)
	defer cancel()
	for kills := 0; ctx.Err() == nil && res.deaths <= r.deaths; {
		p, err := start(life, r.bin, r.dir, r.env...)
		if err != nil {
			return res, err
		}
		r.mu.Lock()
		r.proc = p
		r.mu.Unlock()
		outside := kills < r.kills && (kills > 0 || r.inFlight(ctx, p))
		switch died := r.live(ctx, p, outside); {
		case died:
			res.deaths++
			res.log = p.log.String()
		case outside:
			kills++
		default:
			cancel() // everybody has heard, or it has taken too long
			if err := errors.Join(p.waitReady(readyLimit), p.term()); err != nil {
				return res, fmt.Errorf("orderly end: %w\n%s", err, p.log)
			}
			res.log = p.log.String()
		}
	}
	res.took = time.Since(began)
	r.count(res)
	return res, nil
}

// inFlight waits until the messages of everybody have been taken.
func (r *loopRig) inFlight(ctx context.Context, p *process) bool {
	if r.kills == 0 || p.waitReady(readyLimit) != nil {
		return false
	}
	for len(r.tg.Pending()) > 0 && pause(ctx, 10*time.Millisecond) {
	}
	return true
}

// live lets a process live until it dies (true), is killed from outside, or everybody
// has heard.
func (r *loopRig) live(ctx context.Context, p *process, outside bool) (died bool) {
	var kill <-chan time.Time
	if outside {
		kill = time.After(killEvery/2 + rand.N(killEvery))
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-p.ended:
			p.ended <- err
			return true
		case <-kill:
			_ = p.kill() // it may have died by itself a moment ago
			return false
		case <-tick.C:
			if !outside && r.open() == 0 {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// open is how many people have not heard.
func (r *loopRig) open() (n int) {
	for i := range r.people {
		heard := func(m telegramtest.Message) bool {
			return marker.MatchString(m.Text) || strings.Contains(m.Text, gaveUp)
		}
		if !slices.ContainsFunc(r.tg.Sent(chatID(i)), heard) {
			n++
		}
	}
	return n
}

// gaveUp is how the notice of a run begins that was given up.
const gaveUp = "I was interrupted several times"

func (r *loopRig) count(res *loopResult) {
	for i := range r.people {
		answers, copies, notices := 0, 0, 0
		for _, m := range r.tg.Sent(chatID(i)) {
			switch {
			case strings.Contains(m.Text, gaveUp):
				notices++
			case strings.Contains(m.Text, resentMark):
				copies++ // marked as such
			case marker.MatchString(m.Text):
				answers++
			}
		}
		switch {
		case r.isPoison(i):
			res.told = append(res.told, notices)
		case answers > 1:
			res.twice++
			res.answered++
		case answers+copies > 0:
			res.answered++
		case notices > 0:
			res.spare++
		default:
			res.unanswered++
		}
	}
}
