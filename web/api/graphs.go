package api

import (
	"maps"
	"net/http"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

var noGraph = hint{"There is no graph with that name.", "GET /graphs lists them."}

type (
	// A drawing is an engine that is a graph.
	drawing struct {
		Name    string              `json:"name" doc:"Of the engine."`
		Start   string              `json:"start"`
		Nodes   []string            `json:"nodes" doc:"The start first; END is where a run ends."`
		Edges   map[string][]string `json:"edges" doc:"Where each node may lead, the usual way first."`
		Mermaid string              `json:"mermaid" doc:"The graph as a flowchart of mermaid."`
	}
	drawings struct {
		Graphs []drawing `json:"graphs"`
	}
	// A planView is the plan of a run, and where the run is.
	planView struct {
		Run    claybot.RunID    `json:"runId"`
		Engine string           `json:"engine,omitempty"`
		State  claybot.RunState `json:"state"`
		runs.PlanView
	}
)

func draw(name string, s runs.Shape) drawing {
	edges := s.Edges
	if edges == nil {
		edges = make(map[string][]string)
	}
	return drawing{Name: name, Start: s.Start, Nodes: orEmpty(s.Order()), Edges: edges, Mermaid: s.Mermaid()}
}

func (a *api) graphOperations() []operation {
	return []operation{
		{
			id: "listGraphs", method: http.MethodGet, path: "/graphs", tag: "graphs", scope: web.Read,
			summary: "The engines that are graphs, by name.", answers: []answer{{status: http.StatusOK, value: drawings{}}}, serve: a.listGraphs,
		},
		{
			id: "getGraph", method: http.MethodGet, path: "/graphs/{graph}", tag: "graphs", scope: web.Read,
			summary: "One of them.", answers: []answer{{status: http.StatusOK, value: drawing{}}},
			fails: []int{http.StatusNotFound}, missing: noGraph, serve: a.getGraph,
		},
		{
			id: "getPlan", method: http.MethodGet, path: "/agents/runs/{run}/plan", tag: "graphs", scope: web.Read,
			summary: "The plan of a run, how far it is, and where the run is in its graph.",
			about: "It is what the events of the run tell up to now. steps is empty when the run makes no plan, or none yet. A step is pending, waiting (for an " +
				"approval: questionId, or for its tool), running, ok, failed or skipped. Of an undo run, the steps are what it takes back.",
			answers: []answer{{status: http.StatusOK, value: planView{}}},
			fails:   []int{http.StatusNotFound}, missing: noRun, serve: a.getPlan,
		},
	}
}

func (a *api) listGraphs(w http.ResponseWriter, _ *http.Request) error {
	all := a.Desk.Shapes()
	out := drawings{Graphs: make([]drawing, 0, len(all))}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out.Graphs = append(out.Graphs, draw(name, all[name]))
	}
	return reply(w, http.StatusOK, out)
}

func (a *api) getGraph(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("graph")
	s, ok := a.Desk.Shapes()[name]
	if !ok {
		return storage.ErrNotFound
	}
	return reply(w, http.StatusOK, draw(name, s))
}

func (a *api) getPlan(w http.ResponseWriter, r *http.Request) error {
	run, err := a.Desk.Run(r.Context(), runOf(r))
	if err != nil {
		return err
	}
	plan := runs.PlanOf(nil)
	for ev, err := range a.Desk.Events(r.Context(), run.ID, 0) {
		if err != nil {
			return err
		}
		plan.Add(ev)
	}
	return reply(w, http.StatusOK, planView{Run: run.ID, Engine: run.Engine, State: run.State, PlanView: plan})
}

// engines are the engines that a run may be asked for. An undo has a path of
// its own.
func (a *api) engines() []string {
	names := []string{claybot.EngineReact}
	for _, name := range slices.Sorted(maps.Keys(a.Desk.Shapes())) {
		if name != claybot.EngineUndo && name != claybot.EngineReact {
			names = append(names, name)
		}
	}
	return names
}
