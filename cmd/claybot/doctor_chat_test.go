package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage"
)

// Operators read of what breaks while claybot runs in their chat, with the cause that the doctor has.
// What is read as configuration is changed under the daemon where it could not start with it.
func TestBrokenSetupsInTheChat(t *testing.T) {
	for _, x := range brokenSetups() {
		if x.chat == "" {
			continue
		}
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			want := x.chat
			if want == sameCause {
				want = x.says
			}
			b := newSetupBench(t, x)
			got := b.operatorReads(t)
			if !slices.ContainsFunc(got, func(text string) bool { return strings.Contains(unmarked(text), want) }) {
				t.Errorf("the operator does not read %q, but %q", want, got)
			}
			if all := strings.Join(got, "\n"); strings.Contains(all, "FAKE") || strings.Count(all, "needs your attention") > 1 {
				t.Errorf("the operator reads a secret, or several notices: %q", got)
			}
		})
	}
}

// unmarked is a text without the marks of Markdown.
func unmarked(text string) string { return strings.ReplaceAll(text, `\`, "") }

// operatorReads runs a daemon with the set-up, with which it looks twice what is wrong, and returns
// the notices in the conversation of the operator at the terminal.
func (b *setupBench) operatorReads(t *testing.T) (all []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	d, _ := b.runs(ctx, t)
	return noticesOf(ctx, t, d)
}

// noticesOf has a daemon look twice what is wrong, and returns the notices in the conversation of the operator.
func noticesOf(ctx context.Context, t *testing.T, d *daemon) (all []string) {
	t.Helper()
	for range 2 { // notices of connectors that stop come by themselves
		d.probe(ctx, 0)
		d.system.Look(ctx)
	}
	for len(all) == 0 && ctx.Err() == nil {
		page, err := d.stores.db.OutgoingPage(ctx, storage.OutgoingQuery{Limit: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			if o.Kind == claybot.OutgoingNotice {
				all = append(all, o.Text)
			}
		}
		connectors.Sleep(ctx, 20*time.Millisecond)
	}
	return all
}

// runs runs a daemon with the set-up, to which an operator has written, until the test ends. It reads the file
// while it runs if it could not start with it.
func (b *setupBench) runs(ctx context.Context, t *testing.T) (*daemon, *client) {
	t.Helper()
	e := b.at(new(bytes.Buffer), new(bytes.Buffer))
	e.cli = new(cli)
	e.Config = b.path
	file, err := os.ReadFile(b.path)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := e.load()
	reload := err != nil || c.CheckLocal() != nil
	if reload {
		b.write(t, "claybot.yaml", "language: en\n")
		if c, _, err = e.load(); err != nil {
			t.Fatal(err)
		}
	}
	d, err := openDaemon(ctx, c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	d.env = e
	d.system.Overview.Monitor.Reports.Disk = func() (overview.DiskStatus, error) { return b.disk, nil }
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.run(running) }()
	t.Cleanup(func() { stop(); <-ended; d.close() })
	<-d.listeners.web.Up()
	client, err := dial(c.DataDir)
	if err == nil {
		err = client.ready(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	_ = (&talk{client: client, out: &out, errs: &out}).once(ctx, "/status") // it need not work
	if reload {
		b.write(t, "claybot.yaml", string(file))
		d.reload(ctx, e, false)
	}
	return d, client
}
