package storagetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// subagent describes a subagent of parent.
func subagent(uid string, parent claybot.AgentID) claybot.Descriptor {
	return claybot.Descriptor{
		Type: claybot.AgentSubagent, UID: uid, Parent: parent, Name: "worker " + uid,
		Owner: "telegram/U1", Root: parent, Depth: 1, Profile: "main",
	}
}

func backgroundAgents(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	limits := claybot.Permissions{Web: new(false), WriteDirs: []string{}, Tools: claybot.ToolPermissions{Deny: []string{"x"}}}
	b := claybot.Background{Model: "m", Prompt: "p", Tools: []string{}, Permissions: new(limits.Clone())}
	parent := try(u.AgentFor(ctx, claybot.User("telegram", "C1", "U1")))(t)
	seen := map[claybot.AgentID]claybot.Descriptor{parent.ID: parent.Descriptor}
	for _, d := range []claybot.Descriptor{
		subagent("1", parent.ID), subagent("2", parent.ID), subagent("1", "other"),
		{Type: claybot.AgentCron, UID: "1", Name: "backup"},
		{Type: claybot.AgentHeartbeat, Owner: "telegram/U1"},
		claybot.Thread("telegram/U1:f", "telegram/U1"), claybot.Thread("telegram/U1:g", "telegram/U1"),
	} {
		a := try(u.NewAgent(ctx, d, b))(t)
		if other, ok := seen[a.ID]; ok {
			t.Errorf("%+v and %+v are one agent, want two", d, other)
		}
		seen[a.ID] = d
		if a.Descriptor != d || !reflect.DeepEqual(a.State.Background, &b) {
			t.Errorf("got %+v with %+v, want %+v", a.Descriptor, a.State.Background, d)
		}
		// The copy is the caller's, and the settings of the first call stay.
		a.State.Background.Model, *a.State.Background.Permissions.Web, a.State.Background.Permissions.Tools.Deny[0] = "mine", true, "y"
		again := try(u.NewAgent(ctx, d, claybot.Background{Model: "other", Tools: []string{"x"}}))(t)
		if again.ID != a.ID || !reflect.DeepEqual(again.State.Background, &b) {
			t.Errorf("again: got %s with %+v, want %s", again.ID, again.State.Background, a.ID)
		}
	}
	b.Prompt = "changed by the caller"
	u.Agents = u.Reopen()
	for id, d := range seen {
		a := try(u.AgentFor(ctx, d))(t)
		if a.ID != id || a.Descriptor != d {
			t.Errorf("after a restart: got %s %+v, want %s", a.ID, a.Descriptor, id)
		}
		if got := a.State.Background; id == parent.ID != (got == nil) || got != nil && (got.Prompt != "p" || got.Tools == nil || !reflect.DeepEqual(got.Permissions, &limits)) {
			t.Errorf("after a restart: got settings %+v", got)
		}
	}
	changed := try(u.AgentFor(ctx, subagent("1", parent.ID)))(t)
	l := u.Lease(changed.ID)
	for _, tools := range [][]string{nil, {"a"}, {"a", "b"}, {}} {
		changed.State.Background = &claybot.Background{Tools: tools}
		if err := u.SaveState(ctx, l, changed.State); err != nil {
			t.Fatal(err)
		}
		u.Agents = u.Reopen()
		if got := try(u.Agent(ctx, changed.ID))(t).State; !reflect.DeepEqual(got, changed.State) {
			t.Errorf("tools %v: got %+v", tools, got.Background)
		}
	}
}

func badBackground(t *testing.T, u AgentsUnderTest) {
	for _, d := range []claybot.Descriptor{
		{Type: claybot.AgentCron},
		{Type: claybot.AgentSubagent},
		{Type: claybot.AgentSubagent, UID: "1"},
		{Type: claybot.AgentSubagent, Parent: "p"},
		{Type: claybot.AgentCron, UID: "u\xff"},
		{Type: claybot.AgentCron, UID: "u", Name: "n\xff"},
		{Type: claybot.AgentCron, UID: "u", Owner: "\xff"},
	} {
		if a, err := u.NewAgent(t.Context(), d, claybot.Background{}); err == nil {
			t.Errorf("%+v: got agent %s, want an error", d, a.ID)
		}
	}
}

// newNames asks for known background agents with another name and owner, many
// at once: they stay the agents that they are.
func newNames(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	d := subagent("1", "p")
	id := try(u.AgentFor(ctx, d))(t).ID
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			other := d
			other.Name = fmt.Sprint("name ", i)
			if a, err := u.AgentFor(ctx, other); err != nil || a.ID != id || a.Descriptor != other {
				t.Errorf("got %s %+v, %v, want %s", a.ID, a.Descriptor, err, id)
			}
		})
	}
	wg.Wait()
	want := d
	want.Name, want.Owner = "last", "slack/U9"
	if a := try(u.AgentFor(ctx, want))(t); a.Descriptor != want {
		t.Errorf("got %+v, want %+v", a.Descriptor, want)
	}
	thread := claybot.Thread("x", "slack/U9")
	at := try(u.AgentFor(ctx, thread))(t).ID
	thread.Profile = "other" // the workflow has another one now
	if a := try(u.AgentFor(ctx, thread))(t); a.ID != at || a.Descriptor != thread {
		t.Errorf("got %s %+v, want %s with %+v", a.ID, a.Descriptor, at, thread)
	}
	bare := want.Identity() // what it was born with stays
	bare.Name, bare.Owner = want.Name, want.Owner
	if a := try(u.AgentFor(ctx, bare))(t); a.Descriptor != want {
		t.Errorf("got %+v, want %+v", a.Descriptor, want)
	}
	u.Agents = u.Reopen()
	if a := try(u.Agent(ctx, id))(t); a.Descriptor != want {
		t.Errorf("after a restart: got %+v, want %+v", a.Descriptor, want)
	}
}

func deleteAgents(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	d := claybot.User("telegram", "C1", "U1")
	a, other := try(u.AgentFor(ctx, d))(t), try(u.AgentFor(ctx, subagent("1", "p")))(t)
	h := try(u.OpenHistory(ctx, u.Lease(a.ID)))(t)
	if err := errors.Join(h.Append(ctx, said(1)), u.Delete(ctx, a.ID)); err != nil {
		t.Fatal(err)
	}
	if err := h.Append(ctx, said(2)); err == nil {
		t.Error("the history of a deleted agent was written")
	}
	_ = h.Close() // there is nothing left to close
	for _, id := range []claybot.AgentID{a.ID, claybot.NewID(), "", "../x"} {
		if err := u.Delete(ctx, id); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("delete %q: got %v, want %v", id, err, storage.ErrNotFound)
		}
	}
	if _, err := u.Agent(ctx, a.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want %v", err, storage.ErrNotFound)
	}
	next := try(u.AgentFor(ctx, d))(t)
	if next.ID == a.ID {
		t.Error("the deleted agent is back")
	}
	sameRecords(t, "the new one", try(u.Records(ctx, next.ID))(t), nil)
	u.Agents = u.Reopen()
	if again := try(u.AgentFor(ctx, d))(t); again.ID != next.ID {
		t.Errorf("after a restart: got %s, want %s", again.ID, next.ID)
	}
	if again := try(u.AgentFor(ctx, subagent("1", "p")))(t); again.ID != other.ID {
		t.Errorf("another agent: got %s, want %s", again.ID, other.ID)
	}
}

func results(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("telegram", "C1", "U1")))(t)
	prefix := "agents/" + string(a.ID) + "/results/"
	paths := make(map[string]string)
	for _, call := range []string{
		"call_1", "call_2", "", " ", ".", "..", "../../../etc/passwd", "a/b", "a\\b", "\x00", "\xff\xfe", "ü", "call_1.txt", "call.",
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 100_000), "a\nb", "-rf", "con:aux",
	} {
		path := try(u.SaveResult(ctx, a.ID, call, "text"))(t)
		name, ok := strings.CutPrefix(path, prefix)
		if !ok || len(name) > 128 || strings.ContainsAny(name, "/\\\x00\n: ") || strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".txt") {
			t.Errorf("call %.80q is kept as %.200q", call, path)
		}
		if other, ok := paths[path]; ok {
			t.Errorf("calls %.80q and %.80q are kept in one file", call, other)
		}
		paths[path] = call
		if again := try(u.SaveResult(ctx, a.ID, call, strings.Repeat("y", 100_000)))(t); again != path {
			t.Errorf("again: got %s, want %s", again, path)
		}
	}
	for _, id := range []claybot.AgentID{claybot.NewID(), "..", ""} {
		if path, err := u.SaveResult(ctx, id, "c", "text"); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("agent %q: got %s, %v, want %v", id, path, err, storage.ErrNotFound)
		}
	}
}

func summaries(t *testing.T, u AgentsUnderTest) {
	sum := func(n, keep int) claybot.Record {
		return claybot.Record{Type: claybot.RecordSummary, At: claybot.Time(n), Text: fmt.Sprint("summary ", n), Keep: keep}
	}
	reset := claybot.Record{Type: claybot.RecordReset, At: 5, By: "user"}
	cases := []struct {
		add, want []claybot.Record
		marker    claybot.RecordType
	}{
		{add: []claybot.Record{said(1), said(2), sum(1, 0)}, want: []claybot.Record{sum(1, 0)}},
		{add: []claybot.Record{said(1), said(2), sum(1, 1), said(3)}, want: []claybot.Record{said(2), sum(1, 1), said(3)}},
		{add: []claybot.Record{said(1), sum(1, 9), said(3)}, want: []claybot.Record{said(1), sum(1, 9), said(3)}},
		{add: []claybot.Record{said(1), sum(1, -1)}, want: []claybot.Record{sum(1, -1)}},
		{add: []claybot.Record{sum(1, 3)}, want: []claybot.Record{sum(1, 3)}},
		// The newest wins; an older one among what it keeps is left out.
		{add: []claybot.Record{said(1), sum(1, 1), said(2), sum(2, 1), said(3)}, want: []claybot.Record{said(2), sum(2, 1), said(3)}},
		{add: []claybot.Record{said(1), sum(1, 0), said(2), sum(2, 2)}, want: []claybot.Record{said(2), sum(2, 2)}},
		{add: []claybot.Record{said(1), said(2), sum(1, 1), said(3), sum(2, 3)}, want: []claybot.Record{said(2), said(3), sum(2, 3)}},
		{add: []claybot.Record{said(1), said(2), sum(1, 1), said(3), sum(2, 2)}, want: []claybot.Record{said(2), said(3), sum(2, 2)}},
		// What the older one folded stays folded.
		{add: []claybot.Record{said(1), said(2), sum(1, 1), said(3), sum(2, 99)}, want: []claybot.Record{said(2), said(3), sum(2, 99)}},
		{add: []claybot.Record{said(1), sum(1, 0), sum(2, 5)}, want: []claybot.Record{sum(2, 5)}},
		// A marker is newer, or a border.
		{add: []claybot.Record{said(1), sum(1, 1), reset, said(2)}, want: []claybot.Record{said(2)}, marker: claybot.RecordReset},
		{add: []claybot.Record{said(1), reset, said(2), sum(1, 5), said(3)}, want: []claybot.Record{said(2), sum(1, 5), said(3)}},
	}
	ctx := t.Context()
	check := func(i int, when string, h storage.History) {
		t.Helper()
		sameRecords(t, fmt.Sprintf("case %d, %s", i, when), h.Records(), cases[i].want)
		if got := h.Marker(); got.Type != cases[i].marker {
			t.Errorf("case %d, %s: marker is %+v, want %q", i, when, got, cases[i].marker)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	ids := make([]claybot.AgentID, len(cases))
	for i, tt := range cases {
		a := try(u.AgentFor(ctx, claybot.User("web", fmt.Sprint(i), "u")))(t)
		ids[i] = a.ID
		h := try(u.OpenHistory(ctx, u.Lease(a.ID)))(t)
		for j := range tt.add {
			if err := h.Append(ctx, tt.add[j]); err != nil {
				t.Fatal(err)
			}
		}
		check(i, "at once", h)
		check(i, "opened again", try(u.OpenHistory(ctx, u.Lease(a.ID)))(t))
		sameRecords(t, fmt.Sprintf("case %d, records", i), try(u.Records(ctx, a.ID))(t), tt.want)
	}
	u.Agents = u.Reopen()
	for i, tt := range cases {
		check(i, "after a restart", try(u.OpenHistory(ctx, u.Lease(ids[i])))(t))
		b := try(u.AgentFor(ctx, claybot.User("web", fmt.Sprint(i), "batch")))(t)
		h := try(u.OpenHistory(ctx, u.Lease(b.ID)))(t)
		if err := h.Append(ctx, tt.add...); err != nil {
			t.Fatal(err)
		}
		check(i, "as one batch", h)
	}
}
