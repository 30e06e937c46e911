package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Agents is what keeps agents: who they are, what they remember, their files.
type Agents interface {
	storage.Agents
	storage.Histories
	storage.Files
	storage.HistoryPruner
	storage.DeletedAgents
}

// An AgentsUnderTest is a fresh, empty implementation of Agents.
type AgentsUnderTest struct {
	Agents
	// Lease leases an agent; every call gives a larger token.
	Lease func(id claybot.AgentID) storage.Lease
	// Release ends a lease.
	Release func(l storage.Lease)
	// Whole returns the types of all records of an agent.
	Whole func(id claybot.AgentID) []claybot.RecordType
	// Reopen closes the store and opens it again on the same data, as after a
	// restart. The old one must not be used any more.
	Reopen func() Agents
}

// TestAgents checks that an implementation of Agents keeps the
// contract. open is called once for each part.
func TestAgents(t *testing.T, open func(t *testing.T) AgentsUnderTest) {
	for _, part := range []struct {
		name string
		test func(*testing.T, AgentsUnderTest)
	}{
		{"find or create", findOrCreate},
		{"concurrent first calls", concurrentFirstCalls},
		{"ids are opaque", opaqueIDs},
		{"bad descriptors", badDescriptors},
		{"unknown agents", unknownAgents},
		{"state", states},
		{"histories", histories},
		{"restore after reset", restoreAfterReset},
		{"every record survives", everyRecord},
		{"older leases", olderLeases},
		{"move channel", moveChannel},
		{"canceled contexts", canceledContexts},
		{"background agents", backgroundAgents},
		{"bad background descriptors", badBackground},
		{"new names and owners", newNames},
		{"delete", deleteAgents},
		{"results", results},
		{"files", attachments},
		{"summaries", summaries},
		{"pruned histories", pruned},
		{"erased", erased},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, open(t)) })
	}
}

func findOrCreate(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	d := claybot.User("telegram", "-100", "7")
	a := try(u.AgentFor(ctx, d))(t)
	if err := a.ID.Validate(); err != nil {
		t.Error(err)
	}
	if a.Descriptor != d || time.Since(a.CreatedAt.Time()).Abs() > time.Minute { // the time of a server is an estimate
		t.Errorf("got %+v, want descriptor %+v made just now", a, d)
	}
	if a.State.Engine == "" || a.State.CreatedAt != a.CreatedAt || a.State.Routing != nil {
		t.Errorf("got state %+v, want the default one", a.State)
	}
	if again := try(u.AgentFor(ctx, d))(t); !reflect.DeepEqual(again, a) {
		t.Errorf("second call: got %+v, want %+v", again, a)
	}
	if byID := try(u.Agent(ctx, a.ID))(t); !reflect.DeepEqual(byID, a) {
		t.Errorf("by id: got %+v, want %+v", byID, a)
	}
	if r := try(u.Records(ctx, a.ID))(t); len(r) != 0 {
		t.Errorf("a new agent remembers %v, want nothing", r)
	}
	u.Agents = u.Reopen()
	if again := try(u.AgentFor(ctx, d))(t); !reflect.DeepEqual(again, a) {
		t.Errorf("after a restart: got %+v, want %+v", again, a)
	}
}

func concurrentFirstCalls(t *testing.T, u AgentsUnderTest) {
	const calls = 50
	ids := make([]claybot.AgentID, calls)
	errs := make([]error, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() {
			a, err := u.AgentFor(t.Context(), claybot.User("slack", "T1/C1", "U1"))
			ids[i], errs[i] = a.ID, err
		})
	}
	wg.Wait()
	for i := range calls {
		if errs[i] != nil || ids[i] != ids[0] {
			t.Fatalf("call %d: got %q, %v, want %q", i, ids[i], errs[i], ids[0])
		}
	}
}

func opaqueIDs(t *testing.T, u AgentsUnderTest) {
	seen := make(map[claybot.AgentID]claybot.Descriptor)
	for _, d := range []claybot.Descriptor{
		claybot.User("a", "b", "c"), claybot.User("a", "b c", "d"), claybot.User("a", "b", "c d"),
		claybot.User("a/b", "c", "d"), claybot.User("a", "b/c", "d"), claybot.User("a", "b\x00c", "d"),
		claybot.User("a", `b","c`, "d"), claybot.User("A", "b", "c"), claybot.User("a", "../b", "c"),
		inThread(claybot.User("a", "b", "c"), "t"), inThread(claybot.User("a", "b", "c"), "u"), claybot.User("a", "b", `c","t`),
		claybot.User("a", "ü", "c"), claybot.User("a", "u\u0308", "c"), claybot.User("a", "<&>\u2028", "c"),
	} {
		a := try(u.AgentFor(t.Context(), d))(t)
		if other, ok := seen[a.ID]; ok {
			t.Errorf("%+v and %+v are one agent, want two", d, other)
		}
		seen[a.ID] = d
	}
	u.Agents = u.Reopen()
	for id, d := range seen {
		if a := try(u.AgentFor(t.Context(), d))(t); a.ID != id || a.Descriptor != d {
			t.Errorf("after a restart %+v is %s %+v, want %s", d, a.ID, a.Descriptor, id)
		}
	}
}

func inThread(d claybot.Descriptor, thread string) claybot.Descriptor {
	d.ThreadID = thread
	return d
}

func badDescriptors(t *testing.T, u AgentsUnderTest) {
	for _, d := range []claybot.Descriptor{
		{},
		{Type: claybot.AgentUser},
		claybot.User("", "c", "u"), claybot.User("t", "", "u"), claybot.User("t", "c", ""),
		claybot.User("t", "c\xff", "u"), inThread(claybot.User("t", "c", "u"), "\xff"),
	} {
		if a, err := u.AgentFor(t.Context(), d); err == nil {
			t.Errorf("%+v: got agent %s, want an error", d, a.ID)
		}
	}
}

func unknownAgents(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	for _, id := range []claybot.AgentID{claybot.NewID(), "", "..", "../../../etc/passwd"} {
		_, agentErr := u.Agent(ctx, id)
		_, recordsErr := u.Records(ctx, id)
		_, historyErr := u.OpenHistory(ctx, storage.Lease{Agent: id, Token: 1})
		stateErr := u.SaveState(ctx, storage.Lease{Agent: id, Token: 1}, claybot.AgentState{})
		for _, err := range []error{agentErr, recordsErr} {
			if !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("reading %q: got %v, want %v", id, err, storage.ErrNotFound)
			}
		}
		// A store that knows all leases may miss the lease first.
		for _, err := range []error{historyErr, stateErr} {
			if !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrLeaseLost) {
				t.Errorf("writing %q: got %v, want %v or %v", id, err, storage.ErrNotFound, storage.ErrLeaseLost)
			}
		}
	}
}

func states(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	d := claybot.User("web", "c", "u")
	a := try(u.AgentFor(ctx, d))(t)
	l := u.Lease(a.ID)
	route := d.Route()
	route.ThreadID = "t1"
	want := claybot.AgentState{
		Engine: "react", Routing: &route, LastUserAt: 1700000000001, Context: 42,
		Usage:     claybot.Usage{Input: 1, Output: 2, CachedInput: 3, CostMicroUSD: 4, LLMCalls: 5, ToolCalls: 6, Estimated: true},
		CreatedAt: a.State.CreatedAt, UpdatedAt: 1700000000002,
	}
	check := func(when string) {
		t.Helper()
		got := try(u.Agent(ctx, a.ID))(t)
		if !reflect.DeepEqual(got.State, want) {
			t.Errorf("%s: got %+v, want %+v", when, got.State, want)
		}
		if got.State.Routing != nil {
			got.State.Routing.ThreadID = "mine" // the copy is the caller's
		}
	}
	for _, step := range []func(){
		func() {},
		func() { r := route; r.ThreadID = "t2"; want.Routing = &r },
		func() { want.Routing = nil; want.Usage = claybot.Usage{}; want.Context = 0 },
	} {
		step()
		if err := u.SaveState(ctx, l, want); err != nil {
			t.Fatal(err)
		}
		check("saved")
		check("read twice")
	}
	u.Agents = u.Reopen()
	check("after a restart")
}

func histories(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("web", "c", "u")))(t)
	var want []claybot.Record
	for i := range 3 {
		h := try(u.OpenHistory(ctx, u.Lease(a.ID)))(t)
		sameRecords(t, fmt.Sprintf("opened %d", i), h.Records(), want)
		if m := h.Marker(); m.Type != claybot.RecordStart || m.V == 0 || m.At == 0 {
			t.Errorf("marker is %+v, want the start record", m)
		}
		user, reply := said(2*i), said(2*i+1)
		reply.Type = claybot.RecordAssistant
		if err := h.Buffer(ctx, user); err != nil {
			t.Fatal(err)
		}
		sameRecords(t, "buffered", h.Records(), append(want, user))
		if err := h.Append(ctx, reply, user); err != nil {
			t.Fatal(err)
		}
		want = append(want, user, reply, user)
		sameRecords(t, "appended", h.Records(), want)
		if err := h.Append(ctx); err != nil {
			t.Errorf("append nothing: %v", err)
		}
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := h.Append(ctx, user); err == nil {
			t.Error("append after close: got no error")
		}
		sameRecords(t, "records", try(u.Records(ctx, a.ID))(t), want)
		if i == 1 {
			u.Agents = u.Reopen()
		}
	}
}

func restoreAfterReset(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("web", "c", "u")))(t)
	h := try(u.OpenHistory(ctx, u.Lease(a.ID)))(t)
	reset := claybot.Record{Type: claybot.RecordReset, At: 5, By: "user", MessageID: "m5"}
	for _, batch := range [][]claybot.Record{{said(1), said(2)}, {said(3), reset}, {said(4)}, {reset, reset}, {said(5), said(6)}} {
		if err := h.Append(ctx, batch...); err != nil {
			t.Fatal(err)
		}
	}
	want := []claybot.Record{said(5), said(6)}
	check := func(when string, h storage.History) {
		t.Helper()
		sameRecords(t, when, h.Records(), want)
		if got := h.Marker(); !reflect.DeepEqual(got, reset) {
			t.Errorf("%s: marker is %+v, want %+v", when, got, reset)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	check("at once", h)
	check("opened again", try(u.OpenHistory(ctx, u.Lease(a.ID)))(t))
	u.Agents = u.Reopen()
	check("after a restart", try(u.OpenHistory(ctx, u.Lease(a.ID)))(t))
	sameRecords(t, "records", try(u.Records(ctx, a.ID))(t), want)
	var past []claybot.Record
	if err := u.Past(ctx, a.ID, func(r claybot.Record) bool { past = append(past, r); return len(past) < 9 }); err != nil {
		t.Fatal(err)
	}
	sameRecords(t, "past", past, []claybot.Record{said(6), said(5), reset, reset, said(4), reset, said(3), said(2), said(1)})
	if err := u.Past(ctx, "b23456789012345678901234", func(claybot.Record) bool { return true }); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the past of no agent: %v", err)
	}
}

// everyRecord checks that all fields of all types come back as they went in.
func everyRecord(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("web", "c", "u")))(t)
	want := []claybot.Record{
		{Type: claybot.RecordUser, At: 1, Run: "r", MessageID: "m", Text: "a\nb\x00\u2028<&>\"\\ \U0001F600", From: &claybot.Sender{UserID: "u", Name: "N"}, Quote: "q"},
		{Type: claybot.RecordSystem, At: 2, Run: "r", MessageID: "m2", Text: "t", Origin: "cron"},
		{
			Type: claybot.RecordAssistant, At: 3, Run: "r", Text: "t", Model: "m", Stop: "stop", Step: 7, State: &claybot.ModelState{Of: "host/m", Data: json.RawMessage(`{"k":1}`)}, Tokens: &claybot.Usage{Input: 1 << 53},
			ToolCalls: []claybot.ToolCall{{ID: "1", Name: "shell", Args: `{"a": "]}`}, {ID: "2", Name: "x"}},
		},
		{Type: claybot.RecordTool, At: 4, Run: "r", ToolCallID: "1", Name: "shell", OK: true, MS: 12, Text: strings.Repeat("x", 100_000), Interrupted: true},
		{Type: claybot.RecordNote, At: 5, Text: `,"crc":"00000000"}`, Level: "warn", Aside: true},
		{Type: claybot.RecordNote, At: 6, Text: strings.Repeat("€\"\n", 50_000)},
	}
	h := try(u.OpenHistory(ctx, u.Lease(a.ID)))(t)
	if err := errors.Join(h.Append(ctx, want...), h.Close()); err != nil {
		t.Fatal(err)
	}
	u.Agents = u.Reopen()
	sameRecords(t, "after a restart", try(u.Records(ctx, a.ID))(t), want)
}

func olderLeases(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("web", "c", "u")))(t)
	older := u.Lease(a.ID)
	old := try(u.OpenHistory(ctx, older))(t)
	if err := old.Append(ctx, said(1)); err != nil {
		t.Fatal(err)
	}
	newer := u.Lease(a.ID)
	h := try(u.OpenHistory(ctx, newer))(t)
	want := []claybot.Record{said(1)}
	sameRecords(t, "the new holder", h.Records(), want)
	_, openErr := u.OpenHistory(ctx, older)
	for name, err := range map[string]error{
		"append": old.Append(ctx, said(2)), "open": openErr,
		"save": u.SaveState(ctx, older, claybot.AgentState{Engine: "late"}),
	} {
		if !errors.Is(err, storage.ErrLeaseLost) {
			t.Errorf("%s with the old lease: got %v, want %v", name, err, storage.ErrLeaseLost)
		}
	}
	if err := old.Buffer(ctx, said(2)); err != nil && !errors.Is(err, storage.ErrLeaseLost) { // it may take what it cannot save
		t.Error(err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(h.Append(ctx, said(3)), h.Close(), u.SaveState(ctx, newer, a.State)); err != nil {
		t.Fatal(err)
	}
	sameRecords(t, "records", try(u.Records(ctx, a.ID))(t), append(want, said(3)))
}

func moveChannel(t *testing.T, u AgentsUnderTest) {
	ctx := t.Context()
	id := func(d claybot.Descriptor) claybot.AgentID { t.Helper(); return try(u.AgentFor(ctx, d))(t).ID }
	one, two := id(claybot.User("tg", "-1", "u1")), id(claybot.User("tg", "-1", "u2"))
	other, elsewhere := id(claybot.User("tg2", "-1", "u1")), id(claybot.User("tg", "-2", "u1"))
	taken := id(claybot.User("tg", "-9", "u2"))
	h := try(u.OpenHistory(ctx, u.Lease(one)))(t)
	if err := errors.Join(h.Append(ctx, said(1)), h.Close()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if i == 2 {
			u.Agents = u.Reopen()
		}
		if err := u.MoveChannel(ctx, "tg", "-1", "-9"); err != nil {
			t.Fatal(err)
		}
		for d, want := range map[claybot.Descriptor]claybot.AgentID{
			claybot.User("tg", "-9", "u1"): one, claybot.User("tg", "-9", "u2"): taken, claybot.User("tg", "-1", "u2"): two,
			claybot.User("tg2", "-1", "u1"): other, claybot.User("tg", "-2", "u1"): elsewhere,
		} {
			if got := try(u.AgentFor(ctx, d))(t); got.ID != want || got.Descriptor != d {
				t.Errorf("move %d: %+v is %s %+v, want %s", i, d, got.ID, got.Descriptor, want)
			}
		}
	}
	sameRecords(t, "moved", try(u.Records(ctx, one))(t), []claybot.Record{said(1)})
	if again := id(claybot.User("tg", "-1", "u1")); again == one {
		t.Error("the old channel still finds the moved agent")
	}
}

func canceledContexts(t *testing.T, u AgentsUnderTest) {
	d := claybot.User("web", "c", "u")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.AgentFor(ctx, d); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want success or %v", err, context.Canceled)
	}
	a := try(u.AgentFor(t.Context(), d))(t)
	h := try(u.OpenHistory(t.Context(), u.Lease(a.ID)))(t)
	var want []claybot.Record
	if err := h.Append(ctx, said(1)); err == nil {
		want = append(want, said(1))
	}
	if err := errors.Join(h.Append(t.Context(), said(2)), h.Close()); err != nil {
		t.Fatal(err)
	}
	sameRecords(t, "records", try(u.Records(t.Context(), a.ID))(t), append(want, said(2)))
}

// said is a user record that is known by n.
func said(n int) claybot.Record {
	return claybot.Record{Type: claybot.RecordUser, At: claybot.Time(1000 + n), MessageID: claybot.MessageID(fmt.Sprint("m", n)), Text: fmt.Sprint("text ", n)}
}

func sameRecords(t *testing.T, when string, got, want []claybot.Record) {
	t.Helper()
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %d records %.500v, want %d %.500v", when, len(got), got, len(want), want)
	}
}

// try fails the test when a call failed: try(f())(t).
func try[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
