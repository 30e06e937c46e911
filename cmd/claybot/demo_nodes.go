package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
)

const (
	clusterLimit = 10 * time.Minute // many times what it takes
	// clusterLease is short, to keep the wait for a takeover short.
	clusterLease = 3 * time.Second
	leastNodes   = 2
	mostNodes    = 9
	chatters     = 6
	firstPerson  = 1001
)

// A demoCluster is a play of several members: real processes of this program that share a
// temporary PostgreSQL server, with an emulated Telegram and model.
type demoCluster struct {
	*stage
	db    *demoPostgres
	vars  []string
	nodes []*clusterNode
	asked int // messages that people have sent
}

// A clusterNode is one process.
type clusterNode struct {
	name string
	dir  string
	cmd  *exec.Cmd
	log  *os.File
}

// playNodes shows what becomes of messages when nodes die, freeze and go.
func playNodes(e *env, n int) error {
	if n < leastNodes || n > mostNodes {
		return usageError{fmt.Errorf("--nodes must be within %d and %d", leastNodes, mostNodes)}
	}
	calm, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // of a node that was killed, and of who does not read on
	ctx, cancel := context.WithTimeout(calm, clusterLimit)
	defer cancel()
	c, err := openCluster(ctx, e.out, n)
	if err != nil {
		return err
	}
	defer c.strike()
	for _, act := range []func(context.Context) error{c.hello, c.killed, c.frozen, c.database, c.handedOver, c.accounts} {
		if err := act(ctx); err != nil {
			return fmt.Errorf("the scene did not go as it should: %w%s", err, c.lastWords())
		}
	}
	c.say("--", "the scene went as it should")
	return nil
}

func openCluster(ctx context.Context, out io.Writer, n int) (_ *demoCluster, err error) {
	c := &demoCluster{stage: &stage{out: out, began: time.Now()}}
	defer func() {
		if err != nil {
			c.strike()
		}
	}()
	if c.dir, err = os.MkdirTemp("", "claybot-demo-"); err != nil {
		return nil, err
	}
	c.say("--", "%d nodes over one PostgreSQL, lease %v", n, clusterLease)
	c.say("PostgreSQL", "a server of its own starts")
	if c.db, err = startPostgres(ctx); err != nil {
		return nil, err
	}
	c.stops = append(c.stops, c.db.stop)
	c.telegram = telegramtest.New(telegramtest.Config{OnMessage: func(m telegramtest.Message) {
		if m.Edits == 0 { // its growth is not printed
			c.heard(fmt.Sprintf("person %d", m.ChatID-firstPerson+1), m.Text)
		}
	}})
	c.stops = append(c.stops, c.telegram.Close)
	telegramURL, err := c.telegram.Start()
	if err != nil {
		return nil, err
	}
	c.model = openaitest.New(openaitest.Config{Reply: chatsModel})
	modelURL, stop, err := c.model.Start()
	if err != nil {
		return nil, err
	}
	c.stops = append(c.stops, stop)
	c.vars = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + c.dir, "CLAYBOT_STORAGE_URL=" + c.db.url(), "CLAYBOT_NODE_LEASE=" + clusterLease.String(), "CLAYBOT_NODE_HANDOVER=1s",
		"CLAYBOT_HTTP_ADDR=off", "CLAYBOT_ACCESS=open", "CLAYBOT_LOG=text", "TELEGRAM_BOT_TOKEN=" + telegramtest.Token, "TELEGRAM_API_URL=" + telegramURL,
		"OPENAI_API_KEY=sk-test-not-a-key", "OPENAI_BASE_URL=" + modelURL,
	}
	for i := range n {
		c.nodes = append(c.nodes, &clusterNode{name: string(rune('a' + i)), dir: filepath.Join(c.dir, string(rune('a'+i)))})
	}
	c.stops = append(c.stops, c.endNodes)
	for _, x := range c.nodes {
		if err := c.start(ctx, x); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// start runs a node and waits until it has joined.
func (c *demoCluster) start(ctx context.Context, n *clusterNode) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(n.dir, 0o700); err != nil {
		return err
	}
	if n.log, err = os.OpenFile(n.dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	n.cmd = exec.Command(program, "serve") //nolint:noctx // it is killed by the scene
	n.cmd.Env = append(append([]string{}, c.vars...), "CLAYBOT_NODE_NAME="+n.name, "CLAYBOT_DATA_DIR="+n.dir)
	n.cmd.Stdout, n.cmd.Stderr = n.log, n.log
	if err := n.cmd.Start(); err != nil {
		return err
	}
	err = c.until(ctx, func() (bool, error) {
		got, err := c.db.query(ctx, fmt.Sprintf("SELECT count(*) FROM nodes WHERE name = '%s' AND until > extract(epoch FROM clock_timestamp()) * 1000 AND id LIKE '%%/%d/%%'", n.name, n.cmd.Process.Pid))
		return got == "1", ignoreMissing(err)
	})
	if err != nil {
		return fmt.Errorf("node %s does not start: %w%s", n.name, err, c.lastWords())
	}
	c.say("node "+n.name, "is there")
	return nil
}

// ignoreMissing is nil for tables that are still to be made.
func ignoreMissing(err error) error {
	if err != nil && strings.Contains(err.Error(), "does not exist") {
		return nil
	}
	return err
}

// until asks again and again until it is true.
func (c *demoCluster) until(ctx context.Context, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if err != nil || yes {
			return err
		}
		select {
		case <-time.After(30 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// write lets a person write.
func (c *demoCluster) write(person int, text string) {
	c.asked++
	c.said(fmt.Sprintf("person %d", person), text)
	c.telegram.Say(int64(firstPerson+person-1), int64(firstPerson+person-1), text)
}

// answered waits until each person has so many answers.
func (c *demoCluster) answered(ctx context.Context, n int) error {
	for p := range chatters {
		if _, err := c.telegram.WaitSent(ctx, int64(firstPerson+p), n); err != nil {
			return fmt.Errorf("person %d has no answer: %w", p+1, err)
		}
	}
	return nil
}

// hello makes every user write at once.
func (c *demoCluster) hello(ctx context.Context) error {
	for p := range chatters {
		c.write(p+1, "hello")
	}
	return c.answered(ctx, 1)
}

// holder is the node that works on the agent of person 1.
func (c *demoCluster) holder(ctx context.Context) (*clusterNode, error) {
	var found *clusterNode
	err := c.until(ctx, func() (bool, error) {
		id, err := c.db.query(ctx, "SELECT node FROM agents WHERE run IS NOT NULL AND node IS NOT NULL LIMIT 1")
		if err != nil {
			return false, err
		}
		name, _, _ := strings.Cut(id, "/")
		for _, n := range c.nodes {
			if n.name == name {
				found = n
			}
		}
		return found != nil, nil
	})
	return found, err
}

// story waits for the whole story in the chat of person 1, n times so far.
func (c *demoCluster) story(ctx context.Context, n int) error {
	return c.until(ctx, func() (bool, error) {
		whole := 0
		for _, m := range c.telegram.Sent(firstPerson) {
			if strings.HasSuffix(m.Text, "answered once.") {
				whole++
			}
		}
		return whole >= n, nil
	})
}

// killed kills the node that is writing an answer.
func (c *demoCluster) killed(ctx context.Context) error {
	c.write(1, "tell me a story")
	if _, err := c.telegram.WaitSent(ctx, firstPerson, 2); err != nil { // its beginning is there
		return err
	}
	n, err := c.holder(ctx)
	if err != nil {
		return err
	}
	c.say("kill -9", "node %s, in the middle of the answer", n.name)
	began := time.Now()
	c.kill(n)
	if err := c.story(ctx, 1); err != nil {
		return fmt.Errorf("the story has no end: %w", err)
	}
	c.say("--", "another node went on with the same run; the answer is whole %.1f s after the kill", time.Since(began).Seconds())
	return c.start(ctx, n)
}

// frozen stops a node for longer than its lease, and lets it wake up.
func (c *demoCluster) frozen(ctx context.Context) error {
	c.write(1, "tell me a story again")
	n, err := c.holder(ctx)
	if err != nil {
		return err
	}
	c.say("SIGSTOP", "node %s, for longer than its lease", n.name)
	if err := n.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := c.story(ctx, 2); err != nil {
		return fmt.Errorf("the second story has no end: %w", err)
	}
	c.say("SIGCONT", "node %s, which others have taken over", n.name)
	if err := n.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	for p := range chatters {
		c.write(p+1, "still there?")
	}
	return c.ending(ctx, "still there?")
}

// ending waits until everybody has the echo of a text as the last answer.
func (c *demoCluster) ending(ctx context.Context, text string) error {
	return c.until(ctx, func() (bool, error) {
		for p := range chatters {
			all := c.telegram.Sent(int64(firstPerson + p))
			if len(all) == 0 || all[len(all)-1].Text != "You said: "+text {
				return false, nil
			}
		}
		return true, nil
	})
}

// database restarts the server, hard, while everybody writes.
func (c *demoCluster) database(ctx context.Context) error {
	for p := range chatters {
		c.write(p+1, "and now the database")
	}
	c.say("PostgreSQL", "restarts without saying goodbye")
	if err := c.db.crash(ctx); err != nil {
		return err
	}
	return c.ending(ctx, "and now the database")
}

// handedOver ends the node that polls Telegram, in order.
func (c *demoCluster) handedOver(ctx context.Context) error {
	poller := ""
	err := c.until(ctx, func() (bool, error) {
		id, err := c.db.query(ctx, "SELECT node FROM claims WHERE name LIKE '%telegram/%' AND name NOT LIKE 'out/%' AND node <> ''")
		poller, _, _ = strings.Cut(id, "/")
		return poller != "", err
	})
	if err != nil {
		return fmt.Errorf("no node polls Telegram: %w", err)
	}
	for _, n := range c.nodes {
		if n.name != poller {
			continue
		}
		c.say("SIGTERM", "node %s, which polls Telegram", n.name)
		if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		for p := range chatters {
			c.write(p+1, "who polls now?")
		}
		if err := n.cmd.Wait(); err != nil {
			return fmt.Errorf("node %s did not end in order: %w", n.name, err)
		}
		n.cmd = nil
	}
	return c.ending(ctx, "who polls now?")
}

// accounts counts what became of everything.
func (c *demoCluster) accounts(ctx context.Context) error {
	runs, err := c.db.query(ctx, "SELECT count(*) FROM runs WHERE state = 'SUCCEEDED'")
	if err != nil {
		return err
	}
	waiting, err := c.db.query(ctx, "SELECT count(*) FROM messages WHERE run IS NULL AND skipped IS NULL")
	if err != nil {
		return err
	}
	texts, doubled := 0, 0
	for p := range chatters {
		seen := make(map[string]int)
		for _, m := range c.telegram.Sent(int64(firstPerson + p)) {
			texts++
			if seen[m.Text]++; seen[m.Text] > 1 && !strings.HasPrefix(m.Text, "Once upon") { // which was asked for twice
				doubled++
			}
		}
	}
	c.say("--", "%d messages, %s runs that succeeded, %s still wait, %d answers, %d doubled", c.asked, runs, waiting, texts, doubled)
	if runs != fmt.Sprint(c.asked) || waiting != "0" || doubled != 0 {
		return errors.New("the accounts do not agree")
	}
	return nil
}

// kill ends a node without any warning.
func (c *demoCluster) kill(n *clusterNode) {
	if n.cmd == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGCONT)
	_ = n.cmd.Process.Kill() // it may have ended
	_ = n.cmd.Wait()
	n.cmd = nil
	_ = n.log.Close()
}

func (c *demoCluster) endNodes() {
	for _, n := range c.nodes {
		c.kill(n)
	}
}

// lastWords are the ends of the nodes' logs, which show the reason.
func (c *demoCluster) lastWords() string {
	var b strings.Builder
	for _, n := range c.nodes {
		text, err := os.ReadFile(n.dir + ".log")
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "\nthe end of the log of node %s:\n%s", n.name, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return b.String()
}
