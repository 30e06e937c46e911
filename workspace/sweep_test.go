package workspace_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/workspace"
)

// pulled is a provider whose workspaces are containers: opening one takes a while,
// and what it lists runs.
type pulled struct {
	*observed
	pull time.Duration
}

func (p pulled) Open(ctx context.Context, key workspace.Key, s workspace.Spec) (workspace.Workspace, error) {
	time.Sleep(p.pull)
	return p.observed.Open(ctx, key, s)
}

func (p pulled) List(ctx context.Context) ([]workspace.Info, error) {
	list, err := p.observed.List(ctx)
	for i := range list {
		list[i].State = "running"
	}
	return list, err
}

// A workspace whose image is pulled while the manager looks for what was left is
// in use afterwards, and is removed when its time has passed.
func TestManagerOpensWhileItAdopts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.cfg.Providers = []workspace.Provider{pulled{r.o, 10 * time.Second}}
		r.m = workspace.NewManager(r.cfg)
		r.run()
		r.open("agent/a", time.Hour)
		if e := r.entry("agent/a"); e.State != workspace.Running || e.Expires.IsZero() {
			t.Errorf("entry %+v", e)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got, want := r.o.removals(), []string{"agent/a false"}; !slices.Equal(got, want) {
			t.Errorf("removed %q, want %q", got, want)
		}
	})
}

// An entry that says idle of a container that runs does not make it immortal.
func TestManagerRevives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		defer r.close()
		r.cfg.Providers = []workspace.Provider{pulled{r.o, 0}}
		if _, err := r.o.Provider.Open(t.Context(), "agent/a", full); err != nil {
			t.Fatal(err)
		}
		e := workspace.Entry{Node: "n1", Provider: "local", Key: "agent/a", Agent: "a", State: workspace.Idle, LastUsed: time.Now().UTC(), TTL: time.Hour}
		if saved, err := r.db.SaveWorkspaceEntry(t.Context(), e); !saved || err != nil {
			t.Fatal(err)
		}
		r.m = workspace.NewManager(r.cfg)
		r.run()
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if e := r.entry("agent/a"); e.State != workspace.Running || e.TTL != time.Hour {
			t.Errorf("entry %+v", e)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if got, want := r.o.removals(), []string{"agent/a false"}; !slices.Equal(got, want) {
			t.Errorf("removed %q, want %q", got, want)
		}
	})
}

// The data of an agent that was deleted is removed by the next process, also where
// nothing runs, and where the first removal fails.
func TestManagerForgetsTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(id claybot.AgentID) (bool, error) { return id != "dead", nil })
		defer r.close()
		for key, state := range map[workspace.Key]workspace.State{
			"agent/dead": workspace.Idle, "thread/dead/1": workspace.Running, "browser/dead": workspace.Terminating, "thread/dead/2": workspace.Removed,
			"agent/alive": workspace.Idle, "owner/tg/1": workspace.Idle,
		} {
			e := workspace.Entry{Node: "n1", Provider: "local", Key: key, Agent: key.Agent(), State: state}
			if state == workspace.Terminating {
				e.NextTry = time.Now().Add(time.Minute).UTC()
			}
			if saved, err := r.db.SaveWorkspaceEntry(t.Context(), e); !saved || err != nil {
				t.Fatal(err)
			}
		}
		r.o.fail(1)
		r.run()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		got := r.o.removals()
		slices.Sort(got)
		if want := []string{"agent/dead true", "browser/dead true", "thread/dead/1 true"}; !slices.Equal(got, want) {
			t.Errorf("removed %q, want %q", got, want)
		}
		for _, key := range []workspace.Key{"agent/alive", "owner/tg/1"} {
			if e := r.entry(key); e.State != workspace.Idle {
				t.Errorf("entry %+v", e)
			}
		}
	})
}

// unlisted is a provider that cannot say what it has.
type unlisted struct {
	*observed
	code workspace.Code
}

func (u unlisted) List(context.Context) ([]workspace.Info, error) {
	return nil, &workspace.Error{Code: u.code, Text: "no engine"}
}

// A machine without an engine that has never had a workspace is nothing to warn about;
// one where workspaces may be left is, and so is an engine that fails.
func TestManagerWarnsOfWhatIsLeft(t *testing.T) {
	for _, tt := range []struct {
		name  string
		code  workspace.Code
		state workspace.State // of the one entry; empty: none
		warns bool
	}{
		{"no engine, no workspace", workspace.Unavailable, "", false},
		{"no engine, one removed", workspace.Unavailable, workspace.Removed, false},
		{"no engine, one left", workspace.Unavailable, workspace.Idle, true},
		{"an engine that fails", workspace.Failed, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil)
				defer r.close()
				if tt.state != "" {
					e := workspace.Entry{Node: "n1", Provider: "local", Key: "agent/a", Agent: "a", State: tt.state}
					if saved, err := r.db.SaveWorkspaceEntry(t.Context(), e); !saved || err != nil {
						t.Fatal(err)
					}
				}
				var log bytes.Buffer
				r.cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelInfo}))
				r.cfg.Providers = []workspace.Provider{unlisted{r.o, tt.code}}
				r.m = workspace.NewManager(r.cfg)
				r.run()
				time.Sleep(6 * time.Second)
				synctest.Wait()
				if got := strings.Contains(log.String(), "cannot be looked for"); got != tt.warns {
					t.Errorf("log: %q", log.String())
				}
			})
		})
	}
}
