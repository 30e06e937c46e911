package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

const (
	burstSize = 1000
	// burstEach is how many subagents one person has started: a run may make
	// 200 calls.
	burstEach = 100
	// burstWork is how long the model takes for the work of one subagent.
	burstWork = 50 * time.Millisecond
)

// crowd measures many subagents that are started at once, of which each tenth
// fails: how long it takes until all have ended and every notice was heard, and
// the most memory that takes.
func (b *bencher) crowd(ctx context.Context) error {
	n := cmp.Or(b.burst, burstSize)
	actor := newActor(0, burstWork, burstWork)
	model, stopModel, err := openaitest.New(openaitest.Config{Reply: actor.reply, Keep: 1}).Start()
	if err != nil {
		return err
	}
	defer stopModel()
	server := telegramtest.New(telegramtest.Config{NoJournal: true, NoLimits: true})
	defer server.Close()
	url, err := server.Start()
	if err != nil {
		return err
	}
	dir, err := b.room()
	if err != nil {
		return err
	}
	if err := configure(dir, "on"); err != nil {
		return err
	}
	_, p, err := b.claybot(ctx, &town{server: server, url: url}, model, dir)
	if err != nil {
		return err
	}
	began := time.Now()
	said := sayBurst(server, n)
	if err := awaitBurst(ctx, p, actor, n); err != nil {
		return errors.Join(err, p.kill())
	}
	took := time.Since(began)
	peak, err := p.peak()
	if err != nil {
		return errors.Join(err, p.kill())
	}
	if err := p.term(); err != nil {
		return fmt.Errorf("orderly end: %w\n%s", err, p.log)
	}
	c, err := countBurst(ctx, dir, said)
	if err != nil {
		return err
	}
	fmt.Printf("burst: %d subagents in %v, peak memory %.1f MB; %v\n", n, took.Round(time.Millisecond), float64(peak)/1e6, c)
	b.table.add(fmt.Sprintf("burst of %d subagents, until all have ended", n), took.Seconds(), "s", 0, "all end")
	b.table.add(fmt.Sprintf("burst of %d subagents, peak resident memory", n), float64(peak)/1e6, "MB", 0, "<= 150 MB")
	b.table.add(fmt.Sprintf("burst of %d subagents, failure notices heard", n), float64(c.notices), "", 0, fmt.Sprintf("%d", n/10))
	if c.broken() > 0 || c.started != n {
		return fmt.Errorf("burst: of %d subagents: %v\n%s", n, c, strings.Join(c.stories, "\n"))
	}
	return nil
}

// sayBurst lets as many people as it takes have n subagents started.
func sayBurst(server *telegramtest.Server, n int) []spoken {
	bot, _, _ := strings.Cut(telegramtest.Token, ":")
	var said []spoken
	for i := 0; i*burstEach < n; i++ {
		user, m := int64(1001+i), fmt.Sprintf("m%d-1", i)
		text := fmt.Sprintf("please answer %s burst=b%d:%d", m, i, min(burstEach, n-i*burstEach))
		update := server.Say(user, user, text)
		said = append(said, spoken{m, claybot.MessageID(fmt.Sprintf("telegram/%s/%d", bot, update)), orders(text)})
	}
	return said
}

// awaitBurst returns when the model was asked about all jobs and the daemon has
// nothing left to do. It has no limit but that something goes on.
func awaitBurst(ctx context.Context, p *process, actor *actor, n int) error {
	c, err := openConsole(p.dir)
	if err != nil {
		return err
	}
	defer c.Close()
	last, changed := "", time.Now()
	for {
		done := actor.count()
		quiet, figures, err := c.quiet(ctx)
		if err != nil {
			return err
		}
		now := fmt.Sprint(done, " of ", n, " subagents at work or done, ", figures)
		if now != last {
			last, changed = now, time.Now()
		}
		switch {
		case quiet && done == n && time.Since(changed) > 50*time.Millisecond:
			return nil
		case time.Since(changed) > stillLimit:
			return fmt.Errorf("burst: nothing happens any more: %s\n%s", now, p.log)
		case !pause(ctx, 50*time.Millisecond):
			return context.Cause(ctx)
		}
	}
}

// countBurst reads what became of the orders of all people.
func countBurst(ctx context.Context, dir string, said []spoken) (c *census, err error) {
	a, err := openArchive(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	c = new(census)
	for _, s := range said {
		for _, o := range s.orders {
			if err := c.count(ctx, a, s.id, o, nil); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}
