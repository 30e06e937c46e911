package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/runs/plan"
	"github.com/claybot/claybot/web"
)

type graphCmd struct {
	Show graphShowCmd `cmd:"" default:"withargs" help:"Print agent graphs as Mermaid flowcharts."`
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
	var names []string
	shown := 0
	for _, g := range all {
		names = append(names, g.Name)
		if c.Name != "" && c.Name != g.Name {
			continue
		}
		text := g.Mermaid
		if c.Name == "" { // a comment of mermaid
			text = "%% " + g.Name + "\n" + text
		}
		if shown++; shown > 1 {
			text = "\n" + text
		}
		if err := e.text(text); err != nil {
			return err
		}
	}
	switch {
	case shown > 0:
		return nil
	case len(names) == 0:
		return errors.New("there is no graph")
	}
	return fmt.Errorf("there is no graph %.40q; there are: %s", c.Name, strings.Join(names, ", "))
}

// graphs are those of the daemon that the flags and the environment mean or,
// when none runs, those that one would have.
func (e *env) graphs() ([]web.Drawing, error) {
	c, _, err := e.load()
	if err == nil {
		if _, err := dial(c.DataDir); errors.Is(err, web.ErrNoDaemon) {
			return web.DrawAll(shapes()), nil
		}
	}
	var out web.Drawings
	err = e.ask("GET", "/graphs", nil, &out)
	return out.Graphs, err
}

// shapes are the engines of this program that are graphs. What they work with
// does not change how they look.
func shapes() map[string]runs.Shape {
	return map[string]runs.Shape{
		claybot.EnginePlan:    plan.New(plan.Config{}).Shape(),
		claybot.EngineUndo:    plan.NewUndo(plan.Config{}).Shape(),
		claybot.EngineExplore: explore.New(explore.Config{}).Shape(),
	}
}
