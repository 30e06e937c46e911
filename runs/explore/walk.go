package explore

import (
	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices"
	"github.com/claybot/claybot/runs"
)

// A walk is one pass over a run: the parts whose functions are the nodes of the graph,
// and the device that they share.
type walk struct {
	dev     *session
	setup   *setup
	actor   *actor
	chooser *chooser
	ending  ending
}

// walk prepares a pass. Without a turn it is good for its graph alone.
func (e *Engine) walk(t *runs.Turn) *walk {
	log := e.cfg.Log
	var set Settings
	if t != nil {
		log = log.With("agent", t.Agent.ID, "run", t.Run.ID)
		if e.cfg.Settings != nil {
			set = e.cfg.Settings(t)
		}
	}
	set = set.withDefaults()
	list := set.Hosts
	if host, ok := devices.HostOf(set.URL); ok && len(list) == 0 {
		list = []string{host}
	}
	hosts, wrong := devices.ParseHosts(list)
	dev := &session{open: e.cfg.Open, hosts: hosts, log: log}
	return &walk{
		dev: dev, setup: &setup{dev: dev, set: set, wrong: wrong, log: log}, actor: &actor{dev: dev, keep: set.Screens},
		chooser: &chooser{model: e.cfg.Model, set: set, dev: dev, log: log}, ending: ending{set},
	}
}

// state is what the nodes work with.
type state = runs.State[memory, Output]

// graph is the graph with the nodes of one pass.
func (w *walk) graph() *runs.Graph[memory, Output] {
	return &runs.Graph[memory, Output]{
		Name: claybot.EngineExplore, Start: nodeEnsure,
		Nodes: map[string]runs.Node[memory, Output]{
			nodeEnsure: w.setup.ensure, nodeProvision: w.setup.provision, nodeLaunch: w.setup.launch, nodeIdle: w.setup.waitIdle,
			nodePerceive: w.actor.perceive, nodeEnumerate: enumerate, nodeChoose: w.chooser.choose, nodeAct: w.actor.act,
			nodeVerify: verify, nodePersist: persist, nodeProgress: countProgress, nodeContinue: w.ending.goOn,
			nodeSwitch: switchPolicy, nodeRestart: w.setup.restart, nodeRecover: w.actor.recover, nodeStop: stop,
		},
		Edges: map[string][]string{
			nodeEnsure:    {nodeProvision, nodeStop}, // what is asked for is refused
			nodeProvision: {nodeLaunch},
			nodeLaunch:    {nodeIdle, nodeRestart},
			nodeIdle:      {nodePerceive, nodeRestart},
			nodePerceive:  {nodeEnumerate, nodeRestart},
			nodeEnumerate: {nodeChoose},
			nodeChoose:    {nodeAct, nodeContinue}, // nothing is left to do
			nodeAct:       {nodeVerify, nodeRecover},
			nodeVerify:    {nodePersist},
			nodePersist:   {nodeProgress},
			nodeProgress:  {nodeContinue},
			nodeContinue:  {nodePerceive, nodeSwitch, nodeRestart, nodeStop},
			nodeSwitch:    {nodePerceive},
			nodeRestart:   {nodeIdle, nodeStop}, // it does not come back
			nodeRecover:   {nodeEnumerate},
			nodeStop:      {runs.End},
		},
		Steps: func(*runs.Turn) int { return 16 * (w.ending.set.MaxIterations + 8*maxCrashes) },
	}
}
