package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// graphs serves the engines that are graphs.
type graphs struct{ system web.System }

func (g graphs) operations() []operation {
	return operation{tag: "graphs"}.like(
		returns(http.StatusOK, op("listGraphs", web.Read, "GET /graphs", "List graph engines by name."), func(*http.Request) (web.Drawings, error) {
			return web.Drawings{Graphs: web.DrawAll(g.system.Shapes())}, nil
		}),
		returns(http.StatusOK, op("getGraph", web.Read, "GET /graphs/{graph}", "Get a graph engine.").failing(http.StatusNotFound).
			unknown(hint{"No graph with that name.", "GET /graphs lists all graphs."}), func(r *http.Request) (web.Drawing, error) {
			name := r.PathValue("graph")
			s, ok := g.system.Shapes()[name]
			if !ok {
				return web.Drawing{}, storage.ErrNotFound
			}
			return web.Draw(name, s), nil
		}),
	)
}

// engines returns the engines that a run may request. An undo has its own path.
func (g graphs) engines() []string {
	names := []string{claybot.EngineReact}
	for _, name := range slices.Sorted(maps.Keys(g.system.Shapes())) {
		if name != claybot.EngineUndo && name != claybot.EngineReact && !strings.HasPrefix(name, claybot.EngineFlow+":") {
			names = append(names, name)
		}
	}
	return names
}
