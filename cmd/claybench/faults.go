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

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// The pace of the fault lab.
const (
	strikeLimit = 4 * time.Second // a life in which the call does not come ends after so long
	errorLife   = time.Second     // at most so long, the daemon lives on after an injected error
	labPeople   = 2               // who upload files, and as many who are asked for approval
	enoughLives = 5               // for each row of the table, on average: then each must have been struck
	labSay      = 150 * time.Millisecond
)

// A lab is a crash rig whose daemon dies of its own system calls.
type lab struct {
	*crashRig
	data     string
	tally    map[string]*tally
	refusals int // lives in which the daemon ended by itself
	plan     []blueprint
	presser  *presser
}

// A tally counts the lives of one row of the table; misses are those since the last in
// which the call came.
type tally struct{ lives, struck, early, misses int }

// faultLab lets one system call go wrong in each of many lives of the daemon, and then
// looks for what was lost, doubled or out of order.
func faultLab(ctx context.Context, o options, dir string) (v verdict, err error) {
	if !canSabotage {
		return v, errNoSaboteur
	}
	actor := newActor(20*time.Millisecond, 50*time.Millisecond, 150*time.Millisecond)
	model := openaitest.New(openaitest.Config{Reply: actor.reply, Keep: 1})
	modelURL, stopModel, err := model.Start()
	if err != nil {
		return v, err
	}
	defer stopModel()
	places, err := openPlaces(1)
	if err != nil {
		return v, err
	}
	defer places.close()
	if err := configureLab(dir); err != nil {
		return v, err
	}
	table, err := newTimetable(ctx, dir, taskFolder{dir})
	if err != nil {
		return v, err
	}
	l := &lab{
		crashRig: &crashRig{
			options: o, dir: dir, chats: append(places.chats, labChats(places.telegram)...), actor: actor, table: table,
			env: append(places.env, "OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL="+modelURL),
			rng: rand.New(rand.NewPCG(uint64(o.seed), 4)), every: labSay, forgive: true, pending: places.pending,
		},
		data: filepath.Join(dir, "data"), tally: make(map[string]*tally), presser: &presser{server: places.telegram}, plan: possible(),
	}
	fmt.Printf("faults: %d lives, seed %d, %d chats\n", o.faults, o.seed, len(l.chats))
	stopLoad := l.load(ctx)
	stopPresses := l.presser.start(ctx)
	defer stopPresses()
	err = l.lives(ctx)
	if err := errors.Join(err, stopLoad()); err != nil {
		return v, err
	}
	if err := l.settle(ctx); err != nil {
		return v, err
	}
	if v, err = l.judge(ctx); err != nil {
		return v, err
	}
	return v, l.report(v)
}

// configureLab lets agents ask before they look at the clock.
func configureLab(dir string) error {
	const text = "agents: {default: {memory: off, confirm: {current_time: always}}}\n" +
		"subagents: {max_depth: 3, max_children: 10000, max_starts_per_hour: 1000000}\n"
	return os.WriteFile(filepath.Join(dir, "claybot.yaml"), []byte(text), 0o600)
}

// labChats are people who send files, and people who are asked for approval.
func labChats(s *telegramtest.Server) []*chat {
	bot, _, _ := strings.Cut(telegramtest.Token, ":")
	var all []*chat
	for i := range labPeople {
		uploads := telegramChat(s, bot, int64(2001+i))
		uploads.name = "uploads " + uploads.name
		uploads.plain = true
		uploads.say = func(text string) claybot.MessageID {
			data := []byte(strings.Repeat(text+"\n", 2000))
			update, _ := s.Write(telegramtest.Incoming{
				ChatID: int64(2001 + i), Caption: text,
				Fields: map[string]any{"document": s.AddFile("notes.txt", data)},
			})
			return claybot.MessageID(fmt.Sprintf("telegram/%s/%d", bot, update))
		}
		approvals := telegramChat(s, bot, int64(3001+i))
		approvals.name = "approvals " + approvals.name
		approvals.plain, approvals.polite = true, true // a text instead of a button press would deny
		say, replies := approvals.say, approvals.replies
		approvals.say = func(text string) claybot.MessageID { return say(text + " ask=q" + marker.FindString(text)) }
		approvals.replies = func() []string {
			return slices.DeleteFunc(replies(), func(text string) bool { return strings.HasPrefix(text, "Approv") })
		}
		all = append(all, uploads, approvals)
	}
	return all
}

// A presser presses Approve on the emulated Telegram, once a message.
type presser struct {
	server  *telegramtest.Server
	presses int
}

func (t *presser) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		done := make(map[[2]int64]bool)
		for pause(ctx, 50*time.Millisecond) {
			for i := range labPeople {
				user := int64(3001 + i)
				for _, m := range t.server.Sent(user) {
					if done[[2]int64{user, m.ID}] {
						continue
					}
					if _, ok := t.server.Press(user, user, m.ID, "Approve"); ok {
						done[[2]int64{user, m.ID}] = true
						t.presses++
					}
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// lives lets the daemon live as often as asked, and lets each life go wrong.
func (l *lab) lives(ctx context.Context) error {
	for n := 1; n <= l.faults && ctx.Err() == nil; n++ {
		b := l.choose(n)
		if err := l.life(ctx, b, b.sabotage(l.rng, l.tallyOf(b).misses)); err != nil {
			return fmt.Errorf("life %d (%s, %s): %w", n, b.class, b.how(), err)
		}
		if n%20 == 0 {
			fmt.Printf("faults: %d lives\n", n)
		}
	}
	return context.Cause(ctx)
}

// choose returns what goes wrong in the n-th life: each row of the table once, as far as
// there are so many lives, then any row, but every second time a row that was never
// struck, if there is one.
func (l *lab) choose(n int) blueprint {
	if n <= len(l.plan) {
		return l.plan[(int(uint64(l.seed)%uint64(len(l.plan)))+(n-1)*7)%len(l.plan)]
	}
	if missed := l.missed(); n%2 == 0 && len(missed) > 0 {
		return missed[l.rng.IntN(len(missed))]
	}
	return l.plan[l.rng.IntN(len(l.plan))]
}

// missed are the rows that were never struck.
func (l *lab) missed() (all []blueprint) {
	for _, b := range l.plan {
		if l.tallyOf(b).struck == 0 {
			all = append(all, b)
		}
	}
	return all
}

func (l *lab) tallyOf(b blueprint) *tally {
	t := l.tally[b.row()]
	if t == nil {
		t = new(tally)
		l.tally[b.row()] = t
	}
	return t
}

// life starts the daemon under a saboteur and returns when it is dead.
func (l *lab) life(ctx context.Context, b blueprint, s sabotage) error {
	s.Data, s.Report = l.data, filepath.Join(l.dir, "struck.json")
	if err := os.Remove(s.Report); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	p, err := startStruck(ctx, l.bin, l.dir, s, l.env...)
	if err != nil {
		return err
	}
	early, ready := false, p.ready // early: struck before it was ready
	var struckAt time.Time
	for began := time.Now(); ; {
		select {
		case <-ready:
			early, ready = exists(s.Report), nil
		case err := <-p.ended:
			p.ended <- err
			return l.over(p, b, s, early || ready != nil, err)
		case <-time.After(10 * time.Millisecond):
		}
		if struckAt.IsZero() && exists(s.Report) {
			struckAt = time.Now()
		}
		spent := !struckAt.IsZero() && time.Since(struckAt) > time.Duration(l.rng.Int64N(int64(errorLife)))
		if spent || time.Since(began) > strikeLimit && ready == nil || time.Since(began) > readyLimit || ctx.Err() != nil {
			return l.over(p, b, s, early || ready != nil, p.kill())
		}
	}
}

// over counts a life.
func (l *lab) over(p *process, b blueprint, s sabotage, early bool, err error) error {
	r, readErr := s.readReport()
	if readErr != nil {
		return readErr
	}
	if !r.Done && !killed(err) {
		return fmt.Errorf("the daemon ended by itself: %w\n%s", err, lastLines(p.log.String(), 10))
	}
	t := l.tallyOf(b)
	t.lives++
	t.misses++
	if r.Done {
		t.misses = 0
		t.struck++
		if early {
			t.early++
		}
		if !killed(err) {
			l.refusals++
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
