package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

// An isolationSize is the size of the scene in which one agent's files are faulty
// while other people write.
type isolationSize struct {
	others int           // people whose agents are well
	every  time.Duration // a message of each of them
	loud   int           // so many times as often writes the person of the faulty agent
	phase  time.Duration // so long they write in each phase
	rounds int           // so often each fault comes, each time to another person
	faults []fileFault
}

// The patience of the scene.
const (
	isolationLimit = time.Minute     // until the others have their answers
	mendLimit      = 4 * time.Minute // until the parked messages have theirs
)

// isolationScene is the size that is measured.
func isolationScene(phase time.Duration) isolationSize {
	return isolationSize{others: 30, every: time.Second, loud: 5, phase: phase, rounds: 4, faults: fileFaults()}
}

// isolation measures how long people wait for their answers while the files of one more
// person's agent are faulty, and before and after that. An error is a message without an
// answer, disorder, or a poll that was held; how long answers take is only reported.
func isolation(ctx context.Context, o options, dir string) error {
	s := isolationScene(o.isolation)
	r, err := s.play(ctx, o, dir)
	if err != nil {
		return err
	}
	text := r.markdown()
	fmt.Print(text)
	if o.out != "" {
		if err := writeIsolationReport(o, s, text); err != nil {
			return err
		}
	}
	return errors.Join(r.check(), r.checkPolls())
}

// An isolationRig plays the scene.
type isolationRig struct {
	isolationSize
	dir    string
	env    []string
	seed   uint64
	window *window
	people []*chat // the others, then one for each fault of each round
	result *isolationResult
}

// play lets everybody get an agent in one life of the daemon, so that the next one finds
// the faults when it loads the files, and measures all phases in that next life.
func (s isolationSize) play(ctx context.Context, o options, dir string) (*isolationResult, error) {
	model := openaitest.New(openaitest.Config{Reply: newActor(0, 0, 0).reply, Keep: 1})
	modelURL, stopModel, err := model.Start()
	if err != nil {
		return nil, err
	}
	defer stopModel()
	w := newWindow()
	defer w.server.Close()
	tgURL, stop, err := listen(w)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := configure(dir, "off"); err != nil { // the last phase is not to have longer histories to send
		return nil, err
	}
	r := &isolationRig{isolationSize: s, dir: dir, seed: uint64(o.seed), window: w, result: new(isolationResult), env: []string{
		"TELEGRAM_BOT_TOKEN=" + telegramtest.Token, "TELEGRAM_API_URL=" + tgURL,
		"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL=" + modelURL,
	}}
	bot, _, _ := strings.Cut(telegramtest.Token, ":")
	for i := range s.others + s.rounds*len(s.faults) {
		r.people = append(r.people, telegramChat(w.server, bot, chatID(i)))
	}
	for _, do := range []func(context.Context) error{r.greet, r.measure} {
		if err := r.life(ctx, o.bin, do); err != nil {
			return nil, err
		}
	}
	r.judge()
	return r.result, nil
}

// life runs the daemon for as long as do takes.
func (r *isolationRig) life(ctx context.Context, bin string, do func(context.Context) error) error {
	p, err := start(ctx, bin, r.dir, r.env...)
	if err != nil {
		return err
	}
	if err := p.waitReady(readyLimit); err != nil {
		return errors.Join(err, p.kill())
	}
	guarded, free := p.guard(ctx)
	err = do(guarded)
	free()
	if err != nil {
		return errors.Join(err, p.kill(), errors.New(lastLines(p.log.String(), 20)))
	}
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end: %w\n%s", err, p.log)
	}
	return nil
}

// greet has everybody answered once.
func (r *isolationRig) greet(ctx context.Context) error {
	for i := range r.people {
		r.say(i)
	}
	return r.answered(ctx, isolationLimit, 0, len(r.people))
}

// measure plays the phases: each fault between two phases in which all files are well.
func (r *isolationRig) measure(ctx context.Context) error {
	for i := range r.others { // not measured: connections come into being, and agents are loaded
		r.say(i)
	}
	if err := r.answered(ctx, isolationLimit, 0, r.others); err != nil {
		return err
	}
	for round := range r.rounds {
		for i, f := range r.faults {
			if err := r.phaseOf(ctx, nil, 0); err != nil {
				return err
			}
			if err := r.phaseOf(ctx, &f, r.others+round*len(r.faults)+i); err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	return r.phaseOf(ctx, nil, 0)
}

// phaseOf plays one phase. In one with a fault the loud person writes as well; when the
// others have their answers the files are mended, and the phase ends when the loud
// person has all answers, too.
func (r *isolationRig) phaseOf(ctx context.Context, f *fileFault, loud int) error {
	ph := &isolationPhase{}
	r.result.phases = append(r.result.phases, ph)
	home := ""
	if f != nil {
		ph.fault = f.name
		var err error
		if home, err = agentHome(r.dir, chatID(loud)); err != nil {
			return err
		}
		if err := f.strike(home, r.kept()); err != nil {
			return fmt.Errorf("break the files: %w", err)
		}
	}
	from := make([]int, len(r.people))
	for i, c := range r.people {
		from[i] = len(c.said)
	}
	r.window.longest() // forgets what was before
	began := time.Now()
	for _, x := range r.schedule(f != nil, loud) {
		if err := rest(ctx, time.Until(began.Add(x.at))); err != nil {
			return err
		}
		r.say(x.person)
	}
	if err := r.answered(ctx, isolationLimit, 0, r.others); err != nil {
		return err
	}
	r.count(ph, from)
	if f != nil {
		if err := r.mend(ctx, ph, f, home, loud, from[loud]); err != nil {
			return err
		}
	}
	ph.held = r.window.longest()
	fmt.Println(ph)
	return nil
}

// count takes the answers to what the others have said, behind the first messages of each.
func (r *isolationRig) count(ph *isolationPhase, from []int) {
	var took []time.Duration
	for i, c := range r.people[:r.others] {
		for _, said := range c.said[from[i]:] {
			ph.said++
			if d, ok := r.window.took(said.marker); ok {
				took = append(took, d)
			}
		}
	}
	slices.Sort(took)
	ph.answered = len(took)
	ph.quantiles = [3]time.Duration{percentile(took, .5), percentile(took, .95), percentile(took, .99)}
}

// mend repairs the files of the loud person's agent, and waits for the answers to what
// was said behind the first messages of that person.
func (r *isolationRig) mend(ctx context.Context, ph *isolationPhase, f *fileFault, home string, loud, first int) error {
	c := r.people[loud]
	ph.loudSaid = len(c.said) - first
	for _, said := range c.said[first:] {
		if _, ok := r.window.took(said.marker); ok {
			ph.loudMeanwhile++
		}
	}
	if err := f.mend(home, r.kept()); err != nil {
		return fmt.Errorf("mend the files: %w", err)
	}
	began := time.Now()
	if err := r.answered(ctx, mendLimit, loud, loud+1); err != nil {
		return err
	}
	ph.caughtUp = time.Since(began)
	for _, text := range c.replies() {
		switch {
		case marker.MatchString(text):
		case strings.Contains(text, hasToWait):
			ph.notices++
		default:
			ph.remarks = append(ph.remarks, text)
		}
	}
	return nil
}

// hasToWait is a part of the notice that a message is parked.
const hasToWait = "has to wait"

// kept is where the files are that a fault replaced.
func (r *isolationRig) kept() string { return filepath.Join(r.dir, "kept") }

// A saying is a message that a person writes some time after the begin of a phase.
type saying struct {
	at     time.Duration
	person int
}

// schedule is who writes when. The others write at the same times in every phase.
func (r *isolationRig) schedule(isLoud bool, loud int) (all []saying) {
	spread := func(person, stream int, every, offset, width time.Duration) {
		rng := rand.New(rand.NewPCG(r.seed, uint64(stream)))
		for at := offset; at < r.phase; at += every {
			all = append(all, saying{at + time.Duration(rng.Int64N(int64(width))), person})
		}
	}
	slot := r.every / time.Duration(r.others)
	for i := range r.others {
		spread(i, i, r.every, time.Duration(i)*slot, slot)
	}
	if isLoud {
		every := r.every / time.Duration(r.loud)
		spread(loud, r.others, every, 0, every)
	}
	slices.SortStableFunc(all, func(a, b saying) int { return cmp.Compare(a.at, b.at) })
	return all
}

// say has a person write the next message.
func (r *isolationRig) say(person int) {
	c := r.people[person]
	m := fmt.Sprintf("m%d-%d", person, len(c.said)+1)
	c.said = append(c.said, spoken{marker: m, id: c.say("please answer " + m)})
}

// answered waits until all messages of the people from first up to end are answered, or
// until limit is over: what is missing then is for the judge.
func (r *isolationRig) answered(ctx context.Context, limit time.Duration, first, end int) error {
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		open := 0
		for _, c := range r.people[first:end] {
			for _, said := range c.said {
				if !r.window.came(said.marker) {
					open++
				}
			}
		}
		if open == 0 {
			return nil
		}
		if !pause(ctx, 50*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// judge counts what was not answered, and what was answered out of order or twice.
func (r *isolationRig) judge() {
	var v verdict
	for i, c := range r.people {
		counts := c.counts()
		for _, said := range c.said {
			switch {
			case counts[said.marker] > 0:
			case i < r.others:
				r.result.unanswered++
				v.story("%s: %s has no reply", c.name, said.marker)
			default:
				r.result.parkedLost++
				v.story("%s, whose files were faulty: %s has no reply", c.name, said.marker)
			}
		}
		v.order(c)
	}
	r.result.disorder, r.result.stories = v.disorder+v.unexplained, v.stories
}
