package nodes_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/sqlite"
)

func key(s string) nodes.Key {
	kind, name, _ := strings.Cut(s, "/")
	return nodes.Key{Kind: kind, Name: name}
}

func node(k, state string, uses ...string) nodes.View {
	n := nodes.View{Key: key(k), State: state}
	for _, u := range uses {
		n.Uses = append(n.Uses, key(u))
	}
	return n
}

// What runs says what it lacks; what does not run says its own reason.
func TestSettle(t *testing.T) {
	all := []nodes.View{
		node("mcp/b", nodes.Failed),
		node("model/m", nodes.Off),
		node("profile/waits", nodes.Running, "model/m", "mcp/b"),
		node("profile/lacks", nodes.Running, "model/ok", "mcp/b", "mcp/a", "mcp/gone"),
		node("profile/many", nodes.Running, "model/new", "mcp/a", "tools/x", "mcp/b", "tools/y"), node("model/new", nodes.Waiting),
		node("profile/broken", nodes.Running, "model/down"), node("model/down", nodes.Failed), node("tools/x", nodes.Stopped), node("tools/y", nodes.Stopped),
		node("model/ok", nodes.Running),
		node("mcp/a", nodes.Stopped),
		node("profile/off", nodes.Off, "model/m"),
		node("connector/z", nodes.Running, "profile/waits"),
		node("connector/a", nodes.Running, "profile/lacks"),
		node("schedule/cron", nodes.Running, "profile/off", "profile/lacks"),
		node("flow/f", nodes.Running, "profile/off"),
	}
	nodes.Settle(all)
	var got []string
	for _, n := range all {
		got = append(got, fmt.Sprintf("%s %s: %s", n.Key, n.State, n.Text))
	}
	want := []string{
		"connector/a running: ",
		"connector/z running: ",
		"schedule/cron running: agents of profile/off do not run: it is off",
		"flow/f running: agents of profile/off do not run: it is off",
		"profile/broken waiting: waits for model/down, which has failed",
		"profile/lacks running: works without mcp/b, which has failed, and without mcp/a, which is stopped",
		"profile/many running: works without mcp/b, which has failed, and without mcp/a, tools/x and tools/y, which are stopped",
		"profile/off off: ",
		"profile/waits waiting: waits for model/m, which is off",
		"model/down failed: ",
		"model/m off: ",
		"model/new waiting: ",
		"model/ok running: ",
		"tools/x stopped: ",
		"tools/y stopped: ",
		"mcp/a stopped: ",
		"mcp/b failed: ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// What is stopped holds up what needs it, which says how it is started.
func TestSettleWhatIsStopped(t *testing.T) {
	stop := func(n nodes.View) nodes.View {
		n.State, n.Stopped = nodes.Stopped, &nodes.Order{By: "boss"}
		return n
	}
	all := []nodes.View{
		stop(node("model/m", "")), stop(node("profile/p", "", "model/ok")), node("model/ok", nodes.Running), node("mcp/a", nodes.Failed),
		node("profile/waits", nodes.Running, "model/m", "mcp/a"),
		node("flow/a", nodes.Running, "profile/waits"), node("flow/b", nodes.Running, "profile/p"),
		node("connector/c", nodes.Running, "profile/waits", "profile/p", "mcp/a"),
	}
	nodes.Settle(all)
	var got []string
	for _, n := range all {
		got = append(got, fmt.Sprintf("%s %s: %s", n.Key, n.State, n.Text))
	}
	want := []string{
		"connector/c running: messages wait: model/m is stopped; start it: claybot nodes start model/m; " +
			"messages wait: profile/p is stopped; start it: claybot nodes start profile/p; works without mcp/a, which has failed",
		"flow/a waiting: waits for profile/waits, which is waiting; start it: claybot nodes start model/m",
		"flow/b waiting: waits for profile/p, which is stopped; start it: claybot nodes start profile/p",
		"profile/p stopped: ",
		"profile/waits waiting: waits for model/m, which is stopped; start it: claybot nodes start model/m",
		"model/m stopped: ",
		"model/ok running: ",
		"mcp/a failed: ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestFind(t *testing.T) {
	all := []nodes.View{node("connector/team", ""), node("mcp/team", ""), node("mcp/files", "")}
	nearest := func(string, []string) string { return "mcp/files" }
	for name, want := range map[string]string{
		"files": "mcp/files", "mcp/team": "mcp/team",
		"team": `2 nodes are called "team": say connector/team or mcp/team`,
		"file": `no node is called "file"; did you mean mcp/files?`,
	} {
		got, err := nodes.Find(all, name, nearest)
		if text := fmt.Sprint(err); got.Key.String() != want && text != want {
			t.Errorf("%s: %v, %v", name, got.Key, err)
		}
	}
	if _, err := nodes.Find(nil, "x", func(string, []string) string { return "" }); err == nil || !strings.Contains(err.Error(), "claybot nodes") {
		t.Error(err)
	}
}

// Names cannot leave their labels.
func TestMermaid(t *testing.T) {
	got := nodes.Mermaid([]nodes.View{node(`model/a"]<b>#`, nodes.Running), node("profile/p", nodes.Waiting, `model/a"]<b>#`, "mcp/gone")})
	for _, want := range []string{
		"flowchart LR\n", `n0["model/a#quot;]#lt;b#gt;#35;<br/>running"]:::running`, "  n1 -->|model| n0\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Count(got, "-->") != 1 {
		t.Errorf("an edge to nothing:\n%s", got)
	}
}

func open(t *testing.T) storage.CheckpointSet {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "claybot.db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Orders hold for all who read the store, may be repeated, and keep who gave the first.
func TestOrders(t *testing.T) {
	store, k := open(t), key("connector/team/eu")
	a, err := nodes.NewOrders(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	b, err := nodes.NewOrders(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	does := func(want bool, changed bool, err error) {
		t.Helper()
		if changed != want || err != nil {
			t.Errorf("changed %v, %v", changed, err)
		}
	}
	changed, err := a.Start(t.Context(), k)
	does(false, changed, err)
	changed, err = a.Stop(t.Context(), k, "first")
	does(true, changed, err)
	changed, err = a.Stop(t.Context(), k, "second")
	does(false, changed, err)
	if b.Stopped(k) != nil {
		t.Error("known before it was read")
	}
	changed, err = b.Read(t.Context())
	does(true, changed, err)
	changed, err = b.Read(t.Context())
	does(false, changed, err)
	if o := b.Stopped(k); o == nil || o.By != "first" || o.At == 0 {
		t.Errorf("the order is %+v", o)
	}
	changed, err = b.Start(t.Context(), k)
	does(true, changed, err)
	// What another member did counts, also before it was read.
	if a.Stopped(k) == nil {
		t.Error("read before it was asked")
	}
	changed, err = a.Stop(t.Context(), k, "third")
	does(true, changed, err)
	changed, err = b.Stop(t.Context(), k, "fourth")
	does(true, changed, err)
	if o := b.Stopped(k); o == nil || o.By != "third" {
		t.Errorf("the order is %+v", o)
	}
	changed, err = a.Start(t.Context(), k)
	does(true, changed, err)
	changed, err = b.Start(t.Context(), k)
	does(true, changed, err)
	if a.Stopped(k) != nil || b.Stopped(k) != nil || len(b.All()) != 0 {
		t.Error("still stopped")
	}
}

// However calls come at once, what a process knows is what the store has.
func TestOrdersAtOnce(t *testing.T) {
	store := open(t)
	o, err := nodes.NewOrders(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	keys := []nodes.Key{key("mcp/a"), key("mcp/b")}
	var all sync.WaitGroup
	for i := range 90 {
		all.Go(func() {
			var err error
			switch k := keys[i/3%2]; i % 3 {
			case 0:
				_, err = o.Stop(t.Context(), k, "x")
			case 1:
				_, err = o.Start(t.Context(), k)
			case 2:
				_, err = o.Read(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	read, err := nodes.NewOrders(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		if (o.Stopped(k) == nil) != (read.Stopped(k) == nil) {
			t.Errorf("%s: known %v, stored %v", k, o.Stopped(k), read.Stopped(k))
		}
	}
}
