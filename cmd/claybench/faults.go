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
	"syscall"
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
	labSay      = 150 * time.Millisecond
)

// A blueprint is what goes wrong in one life, apart from when.
type blueprint struct {
	class class
	call  kind
	mode  mode
	errno syscall.Errno
	most  int // the k-th call, at most
}

func (b blueprint) how() string {
	if b.mode == modeError {
		return fmt.Sprintf("%s: %s", strings.TrimSpace(string(b.call)), errnoName(b.errno))
	}
	return "kill, " + string(b.mode)
}

func errnoName(e syscall.Errno) string {
	for name, x := range map[string]syscall.Errno{
		"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EMFILE": syscall.EMFILE, "EACCES": syscall.EACCES,
		"EDQUOT": syscall.EDQUOT, "ENOMEM": syscall.ENOMEM,
	} {
		if x == e {
			return name
		}
	}
	return e.Error()
}

// blueprints are all ways in which the lab lets a call go wrong.
func blueprints() []blueprint {
	var all []blueprint
	deep := map[class]int{classDatabase: 400, classHistory: 60, classAgent: 20, classAttachment: 8, classCron: 20}
	for _, c := range []class{classDatabase, classHistory, classAgent, classAttachment, classCron} {
		for _, m := range []mode{modeBefore, modeHalf, modeAfter} {
			all = append(all, blueprint{class: c, mode: m, most: deep[c]})
		}
		for _, e := range []struct {
			call  kind
			errno syscall.Errno
		}{
			{kindWrite, syscall.EIO},
			{kindWrite, syscall.ENOSPC},
			{kindWrite, syscall.EDQUOT},
			{kindSync, syscall.EIO},
			{kindMeta, syscall.EIO},
			{kindMeta, syscall.EACCES},
			{kindOpen, syscall.EMFILE},
			{kindOpen, syscall.EACCES},
			{kindOpen, syscall.ENOMEM},
			{kindRead, syscall.EIO},
		} {
			all = append(all, blueprint{class: c, call: e.call, mode: modeError, errno: e.errno, most: deep[c] / 2})
		}
	}
	return all
}

// sabotage chooses the moment: in a third of the lives an early call, which is one of
// the recovery of what the life before left behind.
func (b blueprint) sabotage(rng *rand.Rand) sabotage {
	most := b.most
	if rng.IntN(3) == 0 {
		most = min(most, 12)
	}
	return sabotage{
		Class: b.class, Call: b.call, Mode: b.mode, Errno: int(b.errno),
		K: 1 + rng.IntN(most), Times: []int{1, 3, 0}[rng.IntN(3)],
	}
}

// A lab is a crash rig whose daemon dies of its own system calls.
type lab struct {
	*crashRig
	data     string
	tally    map[string]*tally
	order    []string
	refusals int // lives in which the daemon ended by itself
	tapper   *tapper
}

// A tally counts the lives of one kind of strike.
type tally struct{ lives, struck, early int }

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
			rng: rand.New(rand.NewPCG(uint64(o.seed), 4)), every: labSay, forgive: true,
		},
		data: filepath.Join(dir, "data"), tally: make(map[string]*tally), tapper: &tapper{server: places.telegram},
	}
	fmt.Printf("faults: %d lives, seed %d, %d chats\n", o.faults, o.seed, len(l.chats))
	stopLoad := l.load(ctx)
	stopTaps := l.tapper.start(ctx)
	defer stopTaps()
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
		approvals.plain, approvals.polite = true, true // a text instead of a tap would deny
		say, replies := approvals.say, approvals.replies
		approvals.say = func(text string) claybot.MessageID { return say(text + " ask=q" + marker.FindString(text)) }
		approvals.replies = func() []string {
			return slices.DeleteFunc(replies(), func(text string) bool { return strings.HasPrefix(text, "Approv") })
		}
		all = append(all, uploads, approvals)
	}
	return all
}

// A tapper approves whatever is asked on the emulated Telegram, once a message.
type tapper struct {
	server *telegramtest.Server
	taps   int
}

func (t *tapper) start(ctx context.Context) (stop func()) {
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
					if _, ok := t.server.Tap(user, user, m.ID, "Approve"); ok {
						done[[2]int64{user, m.ID}] = true
						t.taps++
					}
				}
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// lives lets the daemon live as often as asked, and lets each life go wrong.
func (l *lab) lives(ctx context.Context) error {
	plan := blueprints()
	for n := 1; n <= l.faults && ctx.Err() == nil; n++ {
		b := plan[l.rng.IntN(len(plan))]
		if n <= len(plan) { // each once, as far as there are so many lives
			b = plan[(n-1)*7%len(plan)]
		}
		if err := l.life(ctx, b, b.sabotage(l.rng)); err != nil {
			return fmt.Errorf("life %d (%s, %s): %w", n, b.class, b.how(), err)
		}
		if n%20 == 0 {
			fmt.Printf("faults: %d lives\n", n)
		}
	}
	return context.Cause(ctx)
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
	key := string(b.class) + " | " + b.how()
	t := l.tally[key]
	if t == nil {
		t = new(tally)
		l.tally[key], l.order = t, append(l.order, key)
	}
	t.lives++
	if r.Done {
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

// report prints the table of the lab and keeps it in the file of the benchmarks.
func (l *lab) report(v verdict) error {
	slices.Sort(l.order)
	var b strings.Builder
	b.WriteString("| files | fault | lives | struck | of these before ready |\n|---|---|---:|---:|---:|\n")
	var sum tally
	for _, key := range l.order {
		t := l.tally[key]
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", key, t.lives, t.struck, t.early)
		sum.lives, sum.struck, sum.early = sum.lives+t.lives, sum.struck+t.struck, sum.early+t.early
	}
	fmt.Fprintf(&b, "| all | | %d | %d | %d |\n\n", sum.lives, sum.struck, sum.early)
	fmt.Fprintf(&b, "| result | count | bar |\n|---|---:|---|\n| messages | %d | |\n| answered | %d | |\n| ended in a notice | %d | 0 |\n", v.said, v.answered, v.noticed)
	fmt.Fprintf(&b, "| lost | %d | 0 |\n| out of order | %d | 0 |\n| doubled without a mark | %d | 0 |\n| marked second copies | %d | |\n", v.lost, v.disorder, v.unexplained, v.explained)
	fmt.Fprintf(&b, "| approvals given | %d | |\n| subagents started, broken promises about them | %d, %d | 0 |\n", l.tapper.taps, v.census.started, v.census.broken())
	fmt.Fprintf(&b, "| calls that failed with an injected error, as the model was told | %d | |\n", v.census.refused)
	fmt.Fprintf(&b, "| scheduled instants, broken promises about them | %d, %d | 0 |\n", v.instants.fired, v.instants.broken())
	fmt.Fprintf(&b, "| lives that the daemon ended itself after an injected error | %d | |\n", l.refusals)
	fmt.Print(b.String())
	if v.broken() > 0 {
		stories := slices.Concat(v.stories, v.census.stories, v.instants.stories)
		return fmt.Errorf("promises broken; repeat with: go run ./cmd/claybench -faults %d -seed %d\n%s", l.faults, l.seed, strings.Join(stories, "\n"))
	}
	if l.out == "" {
		return nil
	}
	return writeFaultsReport(l.options, b.String())
}
