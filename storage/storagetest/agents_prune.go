package storagetest

import (
	"slices"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// pruned checks what is left of histories of which the records before 10 are old. The start
// of each is older, because all of them are in the future.
func pruned(t *testing.T, u AgentsUnderTest) {
	sum := func(at, keep int) claybot.Record {
		return claybot.Record{Type: claybot.RecordSummary, At: claybot.Time(1000 + at), Text: "summary", Keep: keep}
	}
	reset := func(at int) claybot.Record {
		return claybot.Record{Type: claybot.RecordReset, At: claybot.Time(1000 + at), By: "user"}
	}
	future := claybot.Now() + 3600_000
	result := claybot.Record{Type: claybot.RecordTool, At: 1002, ToolCallID: "call"}
	expired := []claybot.RecordType{claybot.RecordReset}
	for _, tt := range []prunedCase{
		{name: "before a reset", add: []claybot.Record{said(1), result, reset(3), said(4), said(11)}, whole: types(reset(3), said(4), said(11)), want: []claybot.Record{said(4), said(11)}},
		{name: "before a young reset", add: []claybot.Record{said(1), said(12), reset(13), said(14)}, whole: types(said(12), reset(13), said(14)), want: []claybot.Record{said(14)}},
		{name: "before a summary", add: []claybot.Record{said(1), said(2), said(3), sum(4, 1), said(11)}, whole: types(said(3), sum(4, 1), said(11)), want: []claybot.Record{said(3), sum(4, 1), said(11)}},
		{name: "nothing before the conversation", add: []claybot.Record{said(1), said(11)}, whole: types(claybot.Record{Type: claybot.RecordStart}, said(1), said(11)), want: []claybot.Record{said(1), said(11)}},
		{name: "an idle agent", add: []claybot.Record{said(1), said(2)}, whole: expired},
		{name: "an idle agent after a summary", add: []claybot.Record{said(1), sum(2, 1), said(3)}, whole: expired},
		{name: "an open history", add: []claybot.Record{said(1), said(2)}, held: true, want: []claybot.Record{said(1), said(2)}},
		{name: "all young", add: []claybot.Record{said(11), reset(12), said(13)}, want: []claybot.Record{said(13)}},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.test(t, &u, future) })
	}
}

type prunedCase struct {
	name  string
	add   []claybot.Record
	held  bool
	whole []claybot.RecordType // what is left, from the beginning of the history
	want  []claybot.Record     // what the agent remembers
}

func (tt prunedCase) test(t *testing.T, u *AgentsUnderTest, future claybot.Time) {
	later := func(n int) claybot.Record { r := said(n); r.At += future; return r }
	ctx := t.Context()
	a := try(u.AgentFor(ctx, claybot.User("web", tt.name, "u")))(t)
	for i := range tt.add {
		tt.add[i].At += future
		if call := tt.add[i].ToolCallID; call != "" {
			tt.add[i].Saved = try(u.SaveResult(ctx, a.ID, call, "long"))(t)
		}
	}
	for i := range tt.want {
		tt.want[i].At += future
	}
	l := u.Lease(a.ID)
	h := try(u.OpenHistory(ctx, l))(t)
	if err := h.Append(ctx, tt.add...); err != nil {
		t.Fatal(err)
	}
	if !tt.held {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		u.Release(l)
	}
	for range 2 {
		if err := u.PruneHistories(ctx, future+1010); err != nil {
			t.Fatal(err)
		}
		sameRecords(t, "pruned", try(u.Records(ctx, a.ID))(t), tt.want)
	}
	if tt.held {
		if err := h.Append(ctx, later(15)); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		u.Release(l)
		tt.want = append(tt.want, later(15))
	}
	if tt.whole != nil {
		if got := u.Whole(a.ID); !slices.Equal(got, tt.whole) {
			t.Errorf("left are %v, want %v", got, tt.whole)
		}
	}
	for _, when := range []string{"opened again", "after a restart"} {
		h = try(u.OpenHistory(ctx, u.Lease(a.ID)))(t)
		sameRecords(t, when, h.Records(), tt.want)
		if len(tt.whole) == 1 && h.Marker().By != "retention" && when == "opened again" {
			t.Errorf("marker is %+v", h.Marker())
		}
		tt.want = append(slices.Clone(tt.want), later(20))
		if err := h.Append(ctx, later(20)); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		u.Agents = u.Reopen()
	}
	sameRecords(t, "at last", try(u.Records(ctx, a.ID))(t), tt.want)
}

func types(records ...claybot.Record) (all []claybot.RecordType) {
	for _, r := range records {
		all = append(all, r.Type)
	}
	return all
}

var _ storage.HistoryPruner = Agents(nil)
