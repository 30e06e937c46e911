package slack

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
)

// A drop is a tree that may refuse to write what ends so.
type drop struct {
	storage.Tree
	end atomic.Value // string; empty: nothing
}

func (d *drop) Write(ctx context.Context, path string, body []byte, old int64) (int64, error) {
	if end, _ := d.end.Load().(string); end != "" && strings.HasSuffix(path, end) {
		return 0, errors.New("read only")
	}
	return d.Tree.Write(ctx, path, body, old)
}

// On the first start, too, Slack is not asked while a shared tree refuses writes.
func TestRotationFirstStore(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, _ *vault) {
		tree := &drop{Tree: files.OpenTree(files.TreeConfig{Dir: t.TempDir()})}
		tree.end.Store(".json")
		w.cfg.Rotation.Secrets = storage.NewTreeSecrets(tree, Folder)
		w.Connector = New(w.cfg)
		if _, err := w.Send(t.Context(), outgoing("C1", "", "one")); err == nil || !strings.Contains(err.Error(), "read only") {
			t.Errorf("sent: %v", err)
		}
		if n := w.slack.Refreshed(); n != 0 {
			t.Errorf("%d refreshes while nothing can be stored", n)
		}
		tree.end.Store("")
		time.Sleep(time.Minute)
		w.start(t)
		w.sends(t, "two")
	})
}

// A member that loses the store after Slack's answer stores the tokens later, although another member
// wrote meanwhile that it asks; not in place of newer ones.
func TestRotationStoresLate(t *testing.T) {
	for name, test := range map[string]struct {
		meanwhile func(p *pair)
		stores    bool
	}{
		"another asks":       {func(p *pair) { p.Asked = time.Now() }, true},
		"another has stored": {func(p *pair) { p.Refresh, p.Asked = "xoxe-1-canary-newer", time.Time{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			inRotation(t, func(t *testing.T, w *world, v *vault) {
				w.Connector = New(w.cfg)
				if _, err := w.rotation.renew(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				time.Sleep(11 * time.Hour)
				v.failing(func(set int) error { return map[bool]error{true: errors.New("no database")}[set > 1] })
				if _, err := w.rotation.renew(t.Context(), w.rotation.now.Load().Access); err != nil {
					t.Fatal(err)
				}
				got := w.rotation.now.Load().Refresh
				v.failing(nil)
				p := v.stored(t)
				test.meanwhile(&p)
				raw, _ := json.Marshal(p)
				if err := v.Set("slack", raw); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				_, err := w.rotation.renew(t.Context(), "")
				if stored := v.stored(t); err != nil || (stored.Refresh == got) != test.stores || stored.Refresh != got && stored.Refresh != p.Refresh {
					t.Errorf("got %s, stored are %+v, %v", got, stored, err)
				}
			})
		})
	}
}

// A connector that goes to another app and back does not use the tokens of the other app.
func TestRotationApps(t *testing.T) {
	r := &rotation{Rotation: Rotation{ClientID: "1.2", RefreshToken: firstRefresh}}
	p, begun := r.read(pairOf(nil))
	if begun || p.Refresh != firstRefresh {
		t.Fatalf("%+v, %v", p, begun)
	}
	other := &rotation{Rotation: Rotation{ClientID: "3.4", RefreshToken: "xoxe-1-canary-other"}}
	stored, begun := other.read(p)
	if begun || stored.Refresh != other.RefreshToken {
		t.Errorf("the other app: %+v, %v", stored, begun)
	}
	stored.Refresh = "xoxe-1-canary-next"
	if p, begun := other.read(stored); !begun || p.Refresh != stored.Refresh {
		t.Errorf("the other app again: %+v, %v", p, begun)
	}
	if p, begun := r.read(stored); begun || p.Refresh != firstRefresh || len(p.Seeds) != 2 {
		t.Errorf("back: %+v, %v", p, begun)
	}
}

// A message that waits for a token has not left: what becomes of the token does not make it ambiguous.
func TestRotationNotSent(t *testing.T) {
	inRotation(t, func(t *testing.T, w *world, _ *vault) {
		channel, _ := w.slack.DM("U1", "x")
		for _, name := range []string{"first token", "next token"} {
			w.slack.Expire()
			w.slack.Fail("oauth.v2.access", slacktest.Fault{Hang: true})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := w.Send(ctx, outgoing(channel, "", "two"))
			cancel()
			if err == nil || ambiguous(err) {
				t.Errorf("%s: sent: %v", name, err)
			}
			time.Sleep(10 * time.Second)
			if _, err := w.Send(t.Context(), outgoing(channel, "", "two")); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(10 * time.Minute)
		}
	})
}
