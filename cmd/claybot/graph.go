package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	api "github.com/claybot/claybot/client"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/web"
)

type graphCmd struct {
	Show graphShowCmd `cmd:"" default:"withargs" eg:"graph show plan" help:"Print agent graphs as Mermaid flowcharts."`
}

type graphShowCmd struct {
	Name string `arg:"" optional:"" help:"Name of the graph. Default: all."`
}

// Run prints the graphs of the running daemon or, without one, of this program.
func (c graphShowCmd) Run(e *env) error {
	all, err := e.graphs()
	if err != nil {
		return err
	}
	var names, texts []string
	for _, g := range all {
		names = append(names, g.Name)
		switch c.Name {
		case g.Name:
			return e.text(g.Mermaid)
		case "": // a comment of Mermaid
			texts = append(texts, "%% "+g.Name+"\n"+g.Mermaid)
		}
	}
	if c.Name != "" || len(all) == 0 {
		return fmt.Errorf("no graph %.40q; available graphs: %s", c.Name, cmp.Or(strings.Join(names, ", "), "none"))
	}
	return e.text(strings.Join(texts, "\n"))
}

// graphs returns the graphs of the daemon that the flags and the environment select or, if
// none runs, those of this program.
func (e *env) graphs() ([]web.Drawing, error) {
	c, _, err := e.load()
	if err == nil {
		if _, err := dial(c.DataDir); errors.Is(err, api.ErrNoDaemon) {
			return web.DrawAll(shapes()), nil
		}
	}
	out, err := ask[web.Drawings](e, "GET", to("/graphs"), nil)
	return out.Graphs, err
}

// shapes returns the engines of this program that are graphs. Their shape does not depend
// on their configuration.
func shapes() map[string]runs.Shape {
	return map[string]runs.Shape{
		claybot.EnginePlan:    plan.New(plan.Config{}).Shape(),
		claybot.EngineUndo:    plan.NewUndo(plan.Config{}).Shape(),
		claybot.EngineExplore: explore.New(explore.Config{}).Shape(),
	}
}
