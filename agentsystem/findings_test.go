package agentsystem_test

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/texts"
)

// findings are what a test finds wrong, by parts.
type findings struct {
	atomic.Pointer[[]overview.Finding]
}

func (f *findings) set(all ...overview.Finding) { f.Store(&all) }

func (f *findings) all(overview.Status) []overview.Finding { return slices.Clone(*f.Load()) }

// brokenModel and brokenServer are findings, and fine is the same part that works.
var (
	brokenModel  = overview.Finding{What: "model m", Level: overview.LevelProblem, Code: "credential-refused", Text: "host refuses KEY_A", Next: "copy it again", Part: texts.Part{Kind: texts.PartModel, Name: "m"}, Means: "the service refuses a token or key"}
	brokenServer = overview.Finding{What: "MCP server notes", Level: overview.LevelWarning, Code: "mcp-failing", Text: "connection refused", Part: texts.Part{Kind: texts.PartMCP, Name: "notes"}, Means: "an MCP server does not work"}
)

func fine(f overview.Finding) overview.Finding {
	f.Level, f.Code, f.Text, f.Next = overview.LevelOK, overview.LevelOK, "", ""
	return f
}

const (
	readsModel  = "The model m needs your attention: the service refuses a token or key.\nhost refuses KEY\\_A\nNext step: copy it again"
	readsServer = "The MCP server notes needs your attention: an MCP server does not work.\nconnection refused"
)

// Operators read of each cause once an hour at most, across kills too, in one notice for what is wrong
// at a time, and in one line that it is over; never of what is over before they read of it.
func TestFindingIsToldOncePerHour(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var now findings
		now.set(fine(brokenModel), fine(brokenServer))
		r.reports.Findings = now.all
		n := r.bossy()
		var want []string
		reads := func(when string, more ...string) {
			t.Helper()
			want = append(want, more...)
			time.Sleep(time.Minute) // a cause is told at the second look
			if got := r.bossReads(n); !slices.Equal(got, want) {
				t.Fatalf("%s, the operator reads %q, want %q", when, got, want)
			}
		}
		reads("before it breaks")
		now.set(brokenModel, brokenServer)
		reads("after it broke", readsServer+"\n\n"+readsModel)
		for range 2 {
			r.crash()
			r.start()
			reads("after a kill")
		}
		now.set(fine(brokenModel), brokenServer)
		reads("when it works again", "The model m works again.")
		now.set(brokenModel, brokenServer)
		reads("when it breaks again within the hour")
		r.crash()
		r.start()
		reads("after another kill")
		time.Sleep(time.Hour)
		reads("an hour later", readsModel)
		time.Sleep(5 * time.Hour)
		reads("while it stays so")
		now.set(fine(brokenModel))
		reads("when a part is not known any more", "The model m works again.")
		now.set(fine(brokenModel), fine(brokenServer))
		reads("when all works", "The MCP server notes works again.")
	})
}

// A fault that lasts for less than a look is not told, nor one that is not for chats.
func TestShortFindingIsNotTold(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var now findings
		silent := brokenServer
		silent.Means = ""
		now.set(brokenModel, silent)
		r.reports.Findings = now.all
		n := r.bossy()
		time.Sleep(70 * time.Second) // one look
		now.set(fine(brokenModel), silent)
		if got := r.bossReads(n); len(got) != 0 {
			t.Errorf("the operator reads %q", got)
		}
	})
}

// A notice goes over a connector that works, and never over the one that it is about.
func TestFindingIsToldElsewhere(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		broken := brokenServer
		broken.What, broken.Part = "dead", texts.Part{Kind: texts.PartConnector, Name: "dead"}
		var now findings
		now.set(broken)
		r.reports.Findings = now.all
		dead := &line{name: "dead", chat: &chat{}, fuse: newFuse(-1)}
		r.also = []connectors.Connector{dead}
		n := r.bossy()
		r.post(claybot.User("dead", "boss", "boss"), msg("d", "d")) // the newest conversation
		synctest.Wait()
		before := len(dead.chat.seen())
		dead.Fail("the network is down")
		time.Sleep(time.Minute)
		want := []string{"Dead needs your attention: an MCP server does not work.\nconnection refused"}
		if got := r.bossReads(n); !slices.Equal(got, want) {
			t.Errorf("the operator reads %q, want %q", got, want)
		}
		if got := dead.chat.seen()[before:]; len(got) != 0 {
			t.Errorf("over the dead connector, the operator reads %q", got)
		}
	})
}

// Where no operator can be reached, they read it once they can, as it is then.
func TestFindingIsToldLater(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var now findings
		now.set(brokenModel, brokenServer)
		r.reports.Findings = now.all
		r.instances = map[string]string{"chat": "telegram"}
		r.start()
		time.Sleep(3*time.Hour + time.Second)
		now.set(brokenModel, fine(brokenServer))
		time.Sleep(2 * time.Minute)
		r.post(claybot.User("chat", "boss", "boss"), msg("b", "b"))
		synctest.Wait()
		n := len(r.chat.seen("boss"))
		if got, want := r.bossReads(n), []string{readsModel}; !slices.Equal(got, want) {
			t.Errorf("the operator reads %q, want %q", got, want)
		}
	})
}

// greeted has the operator write, and returns how many messages they have got, a minute later.
func (c *clusterRig) greeted() int {
	c.Helper()
	if err := c.nodes[0].system.Post(c.Context(), claybot.User("chat", "boss", "boss"), msg("b", "b")); err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
	time.Sleep(time.Minute)
	return len(c.chat.seen("boss"))
}

// Of the members of a cluster, one tells what all find, and what a member still finds is not over.
func TestFindingIsToldByOneMember(t *testing.T) {
	t.Parallel()
	var broken [3]atomic.Bool // by the number of the node; the first is 1
	nodesInBubble(t, 2, func(c *clusterRig) {
		c.finds = func(m *member) []overview.Finding {
			if broken[slices.Index(c.nodes, m)+1].Load() {
				return []overview.Finding{brokenModel}
			}
			return []overview.Finding{fine(brokenModel)}
		}
	}, func(c *clusterRig) {
		n := c.greeted()
		reads := func(when string, want ...string) {
			t.Helper()
			time.Sleep(3 * time.Minute)
			if got := c.chat.seen("boss")[n:]; !slices.Equal(got, want) {
				t.Errorf("%s, the operator reads %q, want %q", when, got, want)
			}
		}
		broken[1].Store(true)
		reads("of the first member", readsModel)
		broken[2].Store(true)
		reads("of both", readsModel)
		broken[2].Store(false)
		reads("while the first still finds it", readsModel)
		broken[1].Store(false)
		reads("when it is over", readsModel, "The model m works again.")
	})
}

// Each member of a cluster has a disk of its own, of which operators read.
func TestNearlyFullDiskIsTold(t *testing.T) {
	t.Parallel()
	var low [2]atomic.Bool // by member
	nodesInBubble(t, 2, func(c *clusterRig) {
		c.finds = func(m *member) []overview.Finding {
			n := slices.Index(c.nodes, m)
			f := overview.Finding{What: "disk", Level: overview.LevelWarning, Code: "disk-low", Text: "500 MiB of 1 GiB free", Next: "free disk space", Part: texts.Part{Kind: texts.PartDisk, Name: string(rune('a' + n))}, Means: "less than 1 GiB is free"}
			if n < 0 || !low[n].Load() {
				f = fine(f)
			}
			return []overview.Finding{f}
		}
	}, func(c *clusterRig) {
		n := c.greeted()
		for step, want := range []string{
			"The disk on a needs your attention: less than 1 GiB is free.\n500 MiB of 1 GiB free\nNext step: free disk space",
			"The disk on b needs your attention: less than 1 GiB is free.\n500 MiB of 1 GiB free\nNext step: free disk space",
			"The disk on a has room again.",
			"The disk on b has room again.",
		} {
			low[step%2].Store(step < 2)
			time.Sleep(2 * time.Hour)
			if got := c.chat.seen("boss")[n:]; len(got) != step+1 || got[step] != want {
				t.Errorf("the operator reads %q, want %q last", got, want)
			}
		}
	})
}

// A crash between a notice and its mark neither repeats nor changes the notice.
func TestFindingIsToldOnceAfterACrash(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		var now findings
		now.set(brokenModel)
		r.reports.Findings = now.all
		n := r.bossy()
		time.Sleep(time.Minute)
		want := []string{readsModel}
		if got := r.bossReads(n); !slices.Equal(got, want) {
			t.Fatalf("the operator reads %q, want %q", got, want)
		}
		due := `{"sent":1,"due":[{"what":"model m","code":"credential-refused","part":{"kind":"The model %s","name":"m"},"means":"the service refuses a token or key","text":"host refuses KEY_A","next":"copy it again"}]}`
		if err := r.db.SetCheckpoint(r.Context(), "notice/findings", due); err != nil {
			t.Fatal(err)
		}
		r.crash()
		now.set(brokenModel, brokenServer)
		r.start()
		time.Sleep(time.Minute)
		if got, want := r.bossReads(n), append(want, readsServer); !slices.Equal(got, want) {
			t.Errorf("after the crash, the operator reads %q, want %q", got, want)
		}
	})
}
