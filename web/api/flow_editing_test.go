package api_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// oneFile is the file of the flow news.
type oneFile struct{ by []string }

func (*oneFile) FlowFile(_ context.Context, name, version string) (web.FlowFile, error) {
	if name != "news" || version != "" {
		return web.FlowFile{}, storage.ErrNotFound
	}
	return web.FlowFile{Flow: name, File: "flows/news.yaml", Version: "1", Text: "a"}, nil
}

func (*oneFile) ProposeFlow(_ context.Context, name string, c web.FlowChange) (web.FlowProposal, error) {
	if c.Version != "1" {
		return web.FlowProposal{}, web.ErrFlowStale
	}
	return web.FlowProposal{Flow: name, Version: "2"}, nil
}

func (f *oneFile) SaveFlow(ctx context.Context, name string, c web.FlowChange, by string) (web.FlowProposal, error) {
	f.by = append(f.by, by)
	return f.ProposeFlow(ctx, name, c)
}

func (*oneFile) FlowHistory(context.Context, string) ([]web.FlowSaved, error) {
	return []web.FlowSaved{{By: "a", After: "1"}, {By: "b", Before: "1", After: "2"}}, nil
}

// Those who read see files of workflows; only the scope admin changes them, or shows what a change would make.
func TestFlowEditing(t *testing.T) {
	f := new(oneFile)
	r := start(t, func(r *rig) { r.wrap = func(b *web.Backend) { b.FlowEditor = f } })
	as := func(scope string) []string { return []string{"Authorization", "Bearer " + r.scoped(scope, scope)} }
	reader := as("read")
	if g := r.do("GET", "/flows/news/file", "", reader...); g.code != http.StatusOK {
		t.Errorf("a reader gets %d %s", g.code, g.body)
	}
	const change = `{"version":"1","edits":[{"path":["nodes","a","next"],"value":"b"}]}`
	for _, who := range [][]string{reader, as("operate"), as("approve")} {
		r.refused("POST", "/flows/news/file/diff", change, http.StatusForbidden, "scope", "", who...)
		r.refused("PUT", "/flows/news/file", change, http.StatusForbidden, "scope", "", who...)
		r.refused("GET", "/flows/news/file/history", "", http.StatusForbidden, "scope", "", who...)
	}
	if len(f.by) > 0 {
		t.Fatalf("changed by %q", f.by)
	}
	var out web.FlowProposal
	r.ask("POST", "/flows/news/file/diff", change, http.StatusOK, &out)
	if out.Diff == nil || out.Faults == nil || len(f.by) > 0 {
		t.Errorf("the proposal is %+v, changed by %q", out, f.by)
	}
	r.ask("PUT", "/flows/news/file", `{"version":"1","layout":{"version":"","nodes":{"a":{"x":-10,"y":60}}}}`, http.StatusOK, nil)
	r.refused("PUT", "/flows/news/file", `{"version":"0","text":"b"}`, http.StatusConflict, "stale", "changed meanwhile")
	r.refused("PUT", "/flows/news/file", `{"version":"1"}`, http.StatusBadRequest, "bad_request", "text, edits and layout are empty")
	r.refused("GET", "/flows/nothing/file", "", http.StatusNotFound, "not_found", "No such flow")
	if len(f.by) != 2 || f.by[0] == "" {
		t.Errorf("changed by %q", f.by)
	}
	var all web.FlowSaves
	r.ask("GET", "/flows/news/file/history", "", http.StatusOK, &all)
	if len(all.Changes) != 2 || all.Changes[0].By != "b" {
		t.Errorf("the history is %+v", all)
	}
}
