package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/flows"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/flow"
	"github.com/claybot/claybot/storage"
)

// flowsFolder is the folder of flows, beside the configuration file.
const flowsFolder = "flows"

// The keys of the checkpoints of flows: each version that was accepted, and the versions that are in
// force, which a start with a broken file goes on with.
const (
	flowVersions = "flow/version/"
	flowsInForce = "flow/in-force"
)

// A library has the flows that are in force. It is safe for concurrent use.
type library struct {
	config *settings
	store  storage.CheckpointSet
	world  func() flows.World
	tasks  *cron.Cron // with those that start flows; nil: cron is off
	log    *slog.Logger
	// members returns the names of this cluster member and of the others; nil: there are none.
	members  func() (self string, others []string)
	compared time.Time // when the flows were last compared with theirs; of watch

	recording sync.Mutex // while a test case is made of a run
	saving    sync.Mutex // while a file is changed
	looking   sync.Mutex // while the files are read

	mu     sync.Mutex
	flows  map[string]*flows.Flow       // in force, by name
	kept   map[string]*flows.Flow       // versions that were read, by name and hash
	faults []fileFault                  // of the newest look; the flows in force are older then
	seen   string                       // what the files were at the newest look
	timed  bool                         // the tasks are those of the flows
	others map[string]map[string]string // the versions that other members have, by member and name
}

// A fileFault is a fault of one file.
type fileFault struct {
	File string
	flows.Fault
}

// String is the fault as compilers write it.
func (f fileFault) String() string { return f.File + ":" + f.Fault.String() }

func newLibrary(config *settings, store storage.CheckpointSet, world func() flows.World, log *slog.Logger) *library {
	return &library{config: config, store: store, world: world, log: log, flows: make(map[string]*flows.Flow), kept: make(map[string]*flows.Flow)}
}

// flowsDir returns the folder of flows of a configuration.
func flowsDir(c *configs.Config) string {
	if c.Source.File == "" {
		return flowsFolder
	}
	return filepath.Join(filepath.Dir(c.Source.File), flowsFolder)
}

// readFlows reads the files of flows of a folder, by their names; none where there is no folder.
func readFlows(dir string) (files map[string][]byte, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	files = make(map[string][]byte)
	for _, e := range entries {
		name := e.Name()
		end := filepath.Ext(name)
		if e.IsDir() || end != ".yaml" && end != ".yml" || strings.HasSuffix(name, casesEnding) || strings.HasSuffix(name, flows.LayoutEnding) || strings.HasPrefix(name, ".") {
			continue // one with a name that is none of a flow is a fault, see flows.Check
		}
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || !info.Mode().IsRegular() {
			continue // a pipe would wait
		}
		if info.Size() > 2*flows.MaxFile {
			files[name] = make([]byte, flows.MaxFile+1)
			continue
		}
		if files[name], err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// checkFlows reads and checks the files of flows together.
func checkFlows(dir string, files map[string][]byte, world flows.World) (all map[string]*flows.Flow, faults []fileFault) {
	all = make(map[string]*flows.Flow)
	for name := range files {
		world.Flows = append(world.Flows, strings.TrimSuffix(name, ".yaml"))
	}
	slices.Sort(world.Flows)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dir, name)
		f, found := configs.ReadFlow(path, files[name])
		if len(found) == 0 {
			found = flows.Check(&f, world)
		}
		for _, x := range found {
			faults = append(faults, fileFault{path, x})
		}
		all[f.Name] = &f
	}
	nested := flows.CheckNested(all)
	for _, name := range slices.Sorted(maps.Keys(nested)) {
		for _, x := range nested[name] {
			faults = append(faults, fileFault{all[name].File, x})
		}
	}
	inputs := flows.CheckInputs(all)
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		for _, x := range inputs[name] {
			faults = append(faults, fileFault{all[name].File, x})
		}
	}
	return all, append(faults, overlaps(all)...)
}

// overlaps are triggers of two flows that take the same messages.
func overlaps(all map[string]*flows.Flow) (faults []fileFault) {
	names := slices.Sorted(maps.Keys(all))
	for i, name := range names {
		for _, other := range names[:i] {
			for _, t := range all[name].Triggers {
				for _, o := range all[other].Triggers {
					if t.Overlaps(o) {
						faults = append(faults, fileFault{all[name].File, flows.Fault{
							Line: t.Lines[""], Key: "triggers." + t.Name, Text: fmt.Sprintf("takes messages that the trigger %s of the flow %s takes as well", o.Name, other),
						}})
					}
				}
			}
		}
	}
	return faults
}

// look reads the files, and puts them in force if none has a fault. Otherwise what is in force stays.
// It does nothing while the files are as they were, unless again is set, or some have faults: what they
// name may be there by now, such as the tools of a server that starts.
func (l *library) look(ctx context.Context, again bool) error {
	l.looking.Lock()
	defer l.looking.Unlock()
	dir := flowsDir(l.config.Load())
	files, unread := readFlows(dir)
	var texts strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&texts, "%s %s\n", name, flows.HashOf(string(files[name])))
	}
	l.mu.Lock()
	same := l.seen == texts.String() && len(l.faults) == 0 && unread == nil && !again
	l.mu.Unlock()
	if same {
		return nil
	}
	all, faults := checkFlows(dir, files, l.world())
	if unread != nil {
		faults = []fileFault{{dir, flows.Fault{Line: 1, Text: unread.Error()}}}
	}
	if len(faults) == 0 {
		if err := l.accept(ctx, all); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range faults {
		if !slices.ContainsFunc(l.faults, func(o fileFault) bool { return o.String() == f.String() }) {
			l.log.Error("invalid flow; the flows stay as they were", "fault", f.String())
		}
	}
	l.seen, l.faults = texts.String(), faults
	if len(faults) == 0 {
		l.flows, l.timed = all, false
	}
	return nil
}

// accept stores the versions of flows before they are in force.
func (l *library) accept(ctx context.Context, all map[string]*flows.Flow) error {
	values, hashes := make(map[string]string), make(map[string]string)
	for name, f := range all {
		hashes[name] = f.Hash
		key := flowVersions + name + "/" + f.Hash
		if known, err := l.store.Checkpoint(ctx, key); err != nil {
			return fmt.Errorf("look for a version of the flow %s: %w", name, err)
		} else if known == "" {
			values[key] = f.Text
		}
	}
	set, err := json.Marshal(hashes)
	if err != nil {
		return err
	}
	known, err := l.store.Checkpoint(ctx, flowsInForce)
	if err == nil && known != string(set) {
		for key, text := range values {
			if err = l.store.SetCheckpoint(ctx, key, text); err != nil {
				break
			}
		}
		if err == nil {
			err = l.store.SetCheckpoint(ctx, flowsInForce, string(set))
		}
	}
	if err != nil {
		return fmt.Errorf("store the flows: %w", err)
	}
	return nil
}

// open puts the flows in force that the files have or, if one has a fault, those of the last start.
func (l *library) open(ctx context.Context) error {
	if err := l.look(ctx, true); err != nil {
		return err
	}
	l.mu.Lock()
	broken := len(l.faults) > 0
	l.mu.Unlock()
	if !broken {
		return nil
	}
	known, err := l.store.Checkpoint(ctx, flowsInForce)
	if err != nil || known == "" {
		return err
	}
	hashes := make(map[string]string)
	if err := json.Unmarshal([]byte(known), &hashes); err != nil {
		return nil // none was ever in force
	}
	for name, hash := range hashes {
		f, err := l.version(ctx, name, hash)
		if err != nil {
			l.log.Error("stored flow unreadable", "flow", name, "err", err)
			continue
		}
		l.mu.Lock()
		l.flows[name] = f
		l.mu.Unlock()
	}
	return nil
}

// maxVersions bounds the versions that are kept in memory.
const maxVersions = 200

// version returns a version of a flow that was accepted once.
func (l *library) version(ctx context.Context, name, hash string) (*flows.Flow, error) {
	key := name + "/" + hash
	l.mu.Lock()
	f := l.kept[key]
	if now := l.flows[name]; f == nil && now != nil && now.Hash == hash {
		f = now
	}
	l.mu.Unlock()
	if f != nil {
		return f, nil
	}
	text, err := l.store.Checkpoint(ctx, flowVersions+key)
	switch {
	case err != nil:
		return nil, err
	case text == "":
		return nil, errors.New("is not stored")
	}
	read, faults := configs.ReadFlow(name+".yaml", []byte(text))
	if len(faults) > 0 {
		return nil, fmt.Errorf("cannot be read by this version of claybot: %s", faults[0])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= maxVersions {
		clear(l.kept)
	}
	l.kept[key] = &read
	return &read, nil
}

// watch looks at the files until ctx is done, and checks them again after a reload.
func (l *library) watch(ctx context.Context) {
	for changed := l.config.changed(); ; {
		timer, again := time.NewTimer(lookFile), false
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-changed:
			timer.Stop()
			changed, again = l.config.changed(), true
		}
		if err := l.look(ctx, again); err != nil && ctx.Err() == nil {
			l.log.Warn("failed to read the flows, retrying", "err", err)
		}
		if err := l.compare(ctx, time.Now()); err != nil && ctx.Err() == nil {
			l.log.Warn("failed to compare the flows with those of other members, retrying", "err", err)
		}
		if err := l.schedule(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("failed to schedule the flows, retrying", "err", err)
		}
	}
}

// schedule makes the tasks that start flows those of the flows in force.
func (l *library) schedule(ctx context.Context) error {
	l.mu.Lock()
	timed := l.timed
	l.mu.Unlock()
	if l.tasks == nil || timed || l.tasks.Health().State != connectors.StateLive { // stopped: later
		return nil
	}
	all, specs := l.all(), []connectors.TaskSpec{}
	for _, f := range all {
		for _, t := range f.Triggers {
			if t.Cron == "" {
				continue
			}
			specs = append(specs, connectors.TaskSpec{
				Name: f.Name + " " + t.Name, Description: f.Description, Schedule: t.Cron, Timezone: t.Zone, Owner: f.Owner, Route: "none",
				Flow: f.Name + "/" + t.Name, Prompt: cmp.Or(t.Text, "It is time for "+f.Name+"."),
			})
		}
	}
	if err := l.tasks.KeepFlows(ctx, specs); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timed = true
	for _, f := range all { // unless they have changed meanwhile
		l.timed = l.timed && l.flows[f.Name] == f
	}
	l.timed = l.timed && len(all) == len(l.flows)
	return nil
}

// all lists the flows in force by name.
func (l *library) all() (list []*flows.Flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.flows)) {
		list = append(list, l.flows[name])
	}
	return list
}

// Named implements agentsystem.Flows.
func (l *library) Named(name string) *flows.Flow {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flows[name]
}

// Engine implements worker.Flows.
func (l *library) Engine(start claybot.FlowStart) string {
	if f := l.Named(start.Name); f != nil && !start.Pinned {
		return flow.NameOf(f.Name, f.Hash)
	}
	return flow.NameOf(start.Name, cmp.Or(start.Version, "gone"))
}

// Max implements worker.Flows.
func (l *library) Max(name string) int {
	if f := l.Named(name); f != nil {
		return f.Concurrency.Max
	}
	return 0
}

// Shapes implements worker.Flows.
func (l *library) Shapes() map[string]runs.Shape {
	all := make(map[string]runs.Shape)
	for _, f := range l.all() {
		all[flow.NameOf(f.Name, f.Hash)] = runs.Shape{Name: f.Name, Start: f.Start, Edges: f.Names()}
	}
	return all
}

// Take implements agentsystem.Flows.
func (l *library) Take(to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage, bool) {
	var of *flows.Flow
	var by flows.Trigger
	for _, f := range l.all() {
		for _, t := range f.Triggers {
			if takes(t, to, m) && (of == nil || t.Narrower(by)) {
				of, by = f, t
			}
		}
	}
	if of == nil {
		return to, m, false
	}
	route := m.ReplyRoute(to)
	owner := m.Speaker(to)
	if m.From.Program && !m.From.Bot {
		owner = of.Owner
	}
	m.Route = &route
	d, start := l.begin(of, by, owner, to, m)
	return d, start, true
}

// takes reports whether a trigger is for a message.
func takes(t flows.Trigger, to claybot.Descriptor, m claybot.AgentMessage) bool {
	switch {
	case t.On == "" || t.On != to.Connector, t.Channel != "" && t.Channel != to.ChannelID:
		return false
	case t.User != "" && t.User != m.From.UserID && t.User != to.UserID, t.Mention && m.Context.Unaddressed:
		return false
	case t.Match != "":
		re, err := regexp.Compile(t.Match)
		return err == nil && re.MatchString(m.Text)
	}
	return true
}

// begin makes the message with which a flow begins, and its agent: one for the message, or one for
// all messages of one owner that have the same key.
func (l *library) begin(f *flows.Flow, t flows.Trigger, owner string, from claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage) {
	m.Type, m.Kind, m.Command, m.FirstHand, m.Engine = claybot.MessageSystem, claybot.KindTrigger, "", false, ""
	m.Flow, m.Alone = &claybot.FlowStart{Name: f.Name, Trigger: t.Name, Connector: from.Connector, ChannelID: from.ChannelID}, true
	to := claybot.Descriptor{Type: claybot.AgentFlow, UID: connectors.FileID("flow", f.Name, "message\x00"+string(m.ID)), Owner: owner}
	return l.bound(f, to, m)
}

// fires is cron.Config.Flow.
func (l *library) fires(to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage) {
	if f := l.Named(m.Flow.Name); f != nil {
		return l.bound(f, to, m)
	}
	return to, m
}

// bound completes the message with which a flow begins, and its agent, as the flow says.
func (l *library) bound(f *flows.Flow, to claybot.Descriptor, m claybot.AgentMessage) (claybot.Descriptor, claybot.AgentMessage) {
	m.Flow.Version, m.Budgets = f.Hash, f.Budgets()
	if f.Time > 0 {
		m.Deadline = claybot.At(time.Now().Add(f.Time))
	}
	to.Name, to.Profile = f.Name, f.Profile
	if f.Concurrency.Key == "" {
		return to, m
	}
	key, err := fillFlow(nil, m, f.Concurrency.Key, flow.Names{})
	if err != nil {
		l.log.Warn("the key of a flow cannot be filled, so that its run waits for no other", "flow", f.Name, "message", m.ID, "err", err)
		return to, m
	}
	if m.Flow.Busy = f.Concurrency.Busy; m.Flow.Dry {
		m.Flow.Busy = ""
	}
	to.UID = connectors.FileID("flow", f.Name, fmt.Sprintf("key\x00%s\x00%v", to.Owner, key)) // an agent acts for one owner
	return to, m
}

// status lists what is wrong with the files, and which members have others.
func (l *library) status() []overview.SettingStatus { return append(l.faulty(), l.differing()...) }

// faulty lists what is wrong with the files.
func (l *library) faulty() (all []overview.SettingStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.faults {
		all = append(all, overview.SettingStatus{Text: f.String(), Next: "correct the file; until then the flows stay as they were", Off: true})
	}
	return all
}
