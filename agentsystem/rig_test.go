package agentsystem_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/agentsystem"
	"github.com/claybot/claybot/cluster"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/people"
	chatplatforms "github.com/claybot/claybot/platforms"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/react"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/files"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/sqlite"
	"github.com/claybot/claybot/subagents"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/ask"
	"github.com/claybot/claybot/tools/messaging"
)

// A rig is a daemon on real stores, with a chat and a model that outlive its
// crashes. It stands in a bubble: Wait of synctest returns when all is quiet.
type rig struct {
	*testing.T
	chat  *chat
	mind  *mind
	bench *bench

	// To be set before start.
	runsPerMinute int
	filesPerOwner int64
	ownThreads    bool
	named         []string                         // the chats that the settings name
	instances     map[string]string                // by the name of each connector, its platform
	line          func(*line) connectors.Connector // the connector "chat"
	also          []connectors.Connector
	decorate      func(agentsystem.Stores) agentsystem.Stores
	engine        runs.Engine
	engines       map[string]runs.Engine // besides it
	grace         time.Duration
	blowAfter     int
	maxRuns       int
	// transcribe is Config.Transcribe, sayer is Config.Speak; more are tools besides the usual ones.
	transcribe func(ctx context.Context, run claybot.Run, f claybot.FileReference, open func() (io.ReadCloser, error)) (llm.Speech, error)
	sayer      func(ctx context.Context, run claybot.Run, text string) (llm.Recording, error)
	more       func(s *agentsystem.AgentSystem) []tools.Tool
	logs       io.Writer // takes warnings; optional
	off        func() *runs.Error
	stopped    string // why agents are stopped; of mu
	stops      string // a model that is stopped with the agents that use it; of mu
	reports    overview.Reports
	skills     func() ([]connectors.Command, error) // that agents use by commands
	flows      agentsystem.Flows                    // optional
	hooks      runs.Hooks

	mu      sync.Mutex
	profile profiles.Profile
	access  people.Access
	society subagents.Limits

	dir     string
	fuse    *fuse
	db      *sqlite.DB
	agents  *files.Store
	boots   *files.Boots
	system  *agentsystem.AgentSystem
	stopRun context.CancelFunc
	ended   chan error
	starts  int
}

// rootDir has the data directories of all tests. emptyDir is one as a first start
// makes it, to be copied: making the tables takes longer than most tests.
var rootDir, emptyDir string

func TestMain(m *testing.M) {
	root, err := makeRoot()
	if err == nil {
		rootDir, emptyDir = root, filepath.Join(root, "empty")
		err = os.Mkdir(emptyDir, 0o700)
	}
	if err == nil {
		var db *sqlite.DB
		if db, err = sqlite.Open(context.Background(), filepath.Join(emptyDir, "claybot.db"), sqlite.Config{}); err == nil {
			err = db.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := postgrestest.Main(m)
	_ = os.RemoveAll(root) // a rest in the temporary directory does no harm
	os.Exit(code)
}

// makeRoot makes the folder for all data directories, in memory where there is such
// a place. Most of the time of these tests would be waiting for a disk, and none of
// them is about one: where a process dies, what it has written stays.
func makeRoot() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "agentsystem"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "agentsystem")
}

// newDir is an empty folder below it, which is removed after the test.
func newDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp(rootDir, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// bubble runs a test with virtual time and a rig that is not started.
func bubble(t *testing.T, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, chat: new(chat), mind: newMind(t), dir: newDir(t), blowAfter: -1}
		if err := os.CopyFS(r.dir, os.DirFS(emptyDir)); err != nil {
			t.Fatal(err)
		}
		r.bench = &bench{acted: make(map[string]int), fuse: func() *fuse { return r.fuse }}
		r.line = func(l *line) connectors.Connector { return l }
		r.access.Mode = people.AccessOpen
		r.society = subagents.DefaultLimits
		defer r.shut()
		test(r)
	})
}

// start opens the stores and runs the system.
func (r *rig) start() {
	r.Helper()
	ctx := context.Background()
	r.starts++
	r.fuse = newFuse(r.blowAfter)
	r.blowAfter = -1
	log := slog.New(slog.DiscardHandler)
	if r.logs != nil {
		log = slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	if testing.Verbose() && os.Getenv("RIG_LOG") != "" {
		log = slog.New(slog.NewTextHandler(r.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var err error
	hub := runs.NewHub()
	if r.db, err = sqlite.Open(ctx, filepath.Join(r.dir, "claybot.db"), sqlite.Config{Committed: hub.Committed}); err != nil {
		r.Fatal(err)
	}
	if r.agents, err = files.Open(files.Config{Dir: r.dir, Index: r.db}); err != nil {
		r.Fatal(err)
	}
	if r.boots, err = files.OpenBoots(r.dir); err != nil {
		r.Fatal(err)
	}
	stores := agentsystem.Stores{
		Agents: r.agents, Index: r.db, Inbox: r.db, Runs: r.db, Outbox: r.db, Access: r.db, Counts: r.db,
		Later: r.db, Texts: r.db, Asked: r.db, Marks: r.db, Chatter: r.db, Parking: r.db,
	}
	if r.decorate != nil {
		stores = r.decorate(stores)
	}
	node := fmt.Sprint("node", r.starts)
	r.system = agentsystem.New(agentsystem.Config{
		Stores: r.fuse.stores(stores), Log: log, Members: cluster.Alone(storage.Member{ID: node, Name: node, Version: "test"}), Version: "test", Hub: hub,
		Boots: fusedBoots{r.boots, r.fuse}, Hooks: r.hooks,

		Recordings: agentsystem.Recordings{Transcribe: r.transcribe, Speak: r.sayer}, Reports: r.reports, Limits: agentsystem.Limits{Grace: r.grace, MaxRuns: r.maxRuns},
		PeopleSettings: agentsystem.PeopleSettings{
			Admission: func() people.Access { r.mu.Lock(); defer r.mu.Unlock(); return r.access },
			Operators: func() []string { return []string{"chat/boss"} },
			Instances: func() chatplatforms.Instances { return r.instances },
			Named:     func() []string { return r.named },
		},
		MessageSettings: agentsystem.MessageSettings{
			RunsPerMinute: func() int { return r.runsPerMinute },
			FilesPerOwner: func() int64 { return r.filesPerOwner },
			OwnThreads:    func() bool { return r.ownThreads },
		},
		Settings: agentsystem.Settings{
			Models:  func(claybot.Agent) []string { return []string{"small", "large"} },
			Tools:   func(claybot.Agent) []string { return []string{"look", "pay"} },
			Profile: func(claybot.Descriptor) profiles.Profile { r.mu.Lock(); defer r.mu.Unlock(); return r.profile },
			Society: func() subagents.Limits { r.mu.Lock(); defer r.mu.Unlock(); return r.society },
			Flows:   r.flows,
			Skills: func(context.Context, claybot.Agent) ([]connectors.Command, error) {
				if r.skills == nil {
					return nil, nil
				}
				return r.skills()
			},
			Stopped: r.whyStopped,
			SwitchedOff: func(context.Context, claybot.Agent) *runs.Error {
				if r.off == nil {
					return nil
				}
				return r.off()
			},
		},
	})
	engine := r.engine
	if engine == nil {
		all := slices.Concat(messaging.Tools(r.system.Subagents, r.system.Subagents.Directory, r.system.Subagents.Reminders), ask.Tools(r.system.Questions.Asker))
		if r.more != nil {
			all = append(all, r.more(r.system)...)
		}
		set := r.bench.set(r.T, all...)
		engine = &react.Loop{
			Model: func(claybot.Agent) llm.Model { return r.mind },
			Tools: func(claybot.Agent) *tools.Set { return set },
		}
	}
	r.system.Handle("react", engine)
	for name, e := range r.engines {
		r.system.Handle(name, e)
	}
	run, stop := context.WithCancel(ctx)
	r.stopRun, r.ended = stop, make(chan error, 1)
	all := append([]connectors.Connector{r.line(&line{name: "chat", chat: r.chat, fuse: r.fuse})}, r.also...)
	go func() { r.ended <- r.system.Run(run, all...) }()
	synctest.Wait()
}

// stop ends the system in order.
func (r *rig) stop() {
	r.Helper()
	r.stopRun()
	if err := <-r.ended; err != nil && !r.fuse.dead() {
		r.Errorf("Run: %v", err)
	}
}

// crash ends the process at this moment: nothing of it reaches disk or chat any
// more, but what is under way. The next start finds a copy of the directory as it is
// then.
func (r *rig) crash() {
	r.Helper()
	r.fuse.blow()
	synctest.Wait() // a file that is being replaced could not be copied
	copied := newDir(r.T)
	if err := os.CopyFS(copied, os.DirFS(r.dir)); err != nil {
		r.Fatal(err)
	}
	r.shut()
	r.dir = copied
}

// shut stops what runs and closes the stores.
func (r *rig) shut() {
	if r.db == nil {
		return
	}
	r.stop()
	for _, c := range []interface{ Close() error }{r.agents, r.db, r.boots} {
		if err := c.Close(); err != nil {
			r.Error(err)
		}
	}
	r.db = nil
}

// unclean is how many starts in a row followed a process that died.
func (r *rig) unclean() int {
	r.Helper()
	b, err := files.ReadBoot(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	return b.Unclean
}

// restart stops in order and starts again on the same directory.
func (r *rig) restart() {
	r.Helper()
	r.shut()
	r.start()
}

func (r *rig) setPolicy(p inbox.Policy) {
	r.mu.Lock()
	r.profile.Policy = p
	r.mu.Unlock()
	if r.db == nil {
		return
	}
	if err := r.system.Reschedule(r.Context()); err != nil {
		r.Fatal(err)
	}
}

var ann = claybot.User("chat", "dm-ann", "ann")

func msg(id, text string) claybot.AgentMessage {
	return claybot.AgentMessage{
		ID: claybot.MessageID(id), Type: claybot.MessageUser, Text: text, FirstHand: true,
		From: claybot.Sender{UserID: "ann", Name: "Ann"},
	}
}

func typed(id string, t claybot.MessageType, text string) claybot.AgentMessage {
	m := msg(id, text)
	m.Type = t
	return m
}

func command(id, name string) claybot.AgentMessage {
	m := typed(id, claybot.MessageCommand, "")
	m.Command = name
	return m
}

// say posts messages of Ann, each with its text as id.
func (r *rig) say(texts ...string) {
	r.Helper()
	for _, text := range texts {
		r.post(ann, msg(text, text))
	}
}

func (r *rig) post(d claybot.Descriptor, ms ...claybot.AgentMessage) {
	r.Helper()
	for _, m := range ms {
		if err := r.system.Post(r.Context(), d, m); err != nil {
			r.Fatalf("post %s: %v", m.ID, err)
		}
	}
}

// wants waits until all is quiet and compares what people see.
func (r *rig) wants(texts ...string) {
	r.Helper()
	synctest.Wait()
	if got := r.chat.seen(); !slices.Equal(got, texts) {
		r.Errorf("people see %q, want %q", got, texts)
	}
}

// agent is the id of d, which has one.
func (r *rig) agent(d claybot.Descriptor) claybot.AgentID {
	r.Helper()
	id, err := r.db.IndexedAgent(r.Context(), d)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

func (r *rig) receipt(id claybot.MessageID) storage.Receipt {
	r.Helper()
	rec, err := r.db.Receipt(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return rec
}

// ranWith are the messages of the run that took id; none when none did.
func (r *rig) ranWith(id claybot.MessageID) []claybot.MessageID {
	r.Helper()
	if run := r.receipt(id).Run; run != nil {
		return run.Messages
	}
	return nil
}

// history is what an agent remembers, as lines without times and ids.
func (r *rig) history(d claybot.Descriptor) []string {
	r.Helper()
	var lines []string
	for _, rec := range r.records(d) {
		line := string(rec.Type) + " " + rec.Text
		for _, c := range rec.ToolCalls {
			line += "[" + c.Name + "]"
		}
		if rec.Type == claybot.RecordTool {
			line = "result of " + rec.Name
		}
		lines = append(lines, line)
	}
	return lines
}

func (r *rig) records(d claybot.Descriptor) []claybot.Record {
	r.Helper()
	all, err := r.agents.Records(r.Context(), r.agent(d))
	if err != nil {
		r.Fatal(err)
	}
	return all
}

func (r *rig) events(id claybot.RunID) (all []claybot.Event) {
	r.Helper()
	for e, err := range r.db.Events(r.Context(), id, 0) {
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
