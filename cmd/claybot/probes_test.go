package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/workspace"
)

// A provider of workspaces is told in chats if it worked before, and shown in any case.
func TestProbesTellWhatBroke(t *testing.T) {
	code, text, next := unusable(configs.WorkspaceDocker, &workspace.Error{Code: workspace.Unavailable, Text: "there is no Docker engine: start Docker"})
	broken := overview.Finding{What: "workspaces docker", Level: overview.LevelProblem, Code: code, Text: text, Next: next, Part: texts.Part{Kind: texts.PartWorkspace, Name: "docker"}}
	works := broken
	works.Level, works.Code = overview.LevelOK, overview.LevelOK
	var p probes
	for i, x := range []struct {
		set  overview.Finding
		told bool
	}{{broken, false}, {works, false}, {broken, true}} {
		p.set([]overview.Finding{x.set})
		l := &findingList{hide: strings.NewReplacer()}
		p.findings(l)
		if len(l.all) != 1 || l.all[0].Level != x.set.Level || (l.all[0].Means != "") != x.told {
			t.Errorf("%d: %+v", i, l.all)
		}
		if f := l.all[0]; x.told && (f.Code != "docker-unusable" || f.Text != "there is no Docker engine" || f.Next != "start Docker") {
			t.Errorf("the finding is %+v", f)
		}
	}
}

// What worked lately is not asked; a list clears what it contradicts, and nothing else.
func TestProbedModel(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	for _, x := range []struct {
		name  string
		w     *watched
		asked modelProblem
		took  bool
		code  string // then
		fresh bool   // before
	}{
		{name: "it worked lately", w: &watched{ok: time.Now()}, fresh: true, took: true},
		{name: "it worked long ago", w: &watched{ok: long}, took: true},
		{name: "it failed after it worked", w: &watched{ok: time.Now(), code: "model-failing", problem: "no money"}, took: true, code: "model-failing"},
		{name: "the key is taken again", w: &watched{ok: long, code: "credential-refused", problem: "401"}, took: true},
		{name: "nothing is known", w: &watched{ok: long, code: "credential-refused", problem: "401"}, code: "credential-refused"},
		{name: "the key is refused", w: &watched{ok: long}, asked: modelProblem{"credential-refused", "401"}, code: "credential-refused"},
	} {
		if got := x.w.fresh(time.Now().Add(-probeEvery)); got != x.fresh {
			t.Errorf("%s: fresh is %v", x.name, got)
		}
		if x.w.probed(x.asked, x.took); x.w.code != x.code || (x.w.problem == "") != (x.code == "") {
			t.Errorf("%s: %q %q, want %q", x.name, x.w.code, x.w.problem, x.code)
		}
	}
}

// The code of a call that failed is that of the doctor.
func TestFailureCode(t *testing.T) {
	for _, x := range []struct {
		e    llm.Error
		want string
	}{
		{llm.Error{Class: llm.Permanent, Status: 401, Account: true}, "credential-refused"},
		{llm.Error{Class: llm.Permanent, Status: 429, Account: true}, "model-failing"}, // a list is free
		{llm.Error{Class: llm.Transient}, "model-unreachable"},
		{llm.Error{Class: llm.Transient, Status: 503}, "model-failing"},
	} {
		if got := failureCode(&x.e); got != x.want {
			t.Errorf("%+v: %s, want %s", x.e, got, x.want)
		}
	}
	if code, text, _ := unusable(configs.WorkspaceDocker, errors.New("boom")); code != "docker-unusable" || text != "boom" {
		t.Errorf("%s %s", code, text)
	}
}
