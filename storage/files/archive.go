package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var _ storage.Portable = (*Archive)(nil)

// An ArchiveConfig configures an Archive.
type ArchiveConfig struct {
	Dir string // the data directory, which is held, see Lock
	// Tables are those of claybot.db.
	Tables interface {
		Rows(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error]
		Load(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error
	}
	// Folders of the directory have their names in the tree as well, Names the files
	// of the tree that have another name in the directory.
	Folders []string
	Names   map[string]string
	// Documents are files in folders of agents; nil: there are none.
	Documents Documents
	// Kept are files of the tree that marks have here.
	Kept []storage.MarkFiles
}

// An Archive exports and imports a whole data directory as rows. The directory must
// not be in use otherwise, and an Archive must be used by one goroutine at a time.
// Lines of histories, documents and files are copied unchanged, including damaged
// ones.
type Archive struct {
	cfg     ArchiveConfig
	fs      FS
	root    string
	single  string            // the folder of the one agent that there is, if so
	deleted map[string]string // folders in the quarantine, by agent
	// gathered are the files of the tree that were loaded as marks.
	gathered map[string][]byte
	remarks  []string
	history  struct { // that is written at present
		agent string
		file  *historyFile
	}
}

// unfinishedName is a file that is in a data directory until all has been copied into
// it.
const unfinishedName = "unfinished"

// lockName is the file that Lock holds.
const lockName = "claybot.lock"

// ErrUnfinished means that the data directory is an unfinished copy.
var ErrUnfinished = errors.New("the data directory is a copy that was not finished; remove it and copy again")

// checkFinished returns ErrUnfinished for an unfinished copy.
func checkFinished(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, unfinishedName)); err == nil {
		return fmt.Errorf("%s: %w", dir, ErrUnfinished)
	}
	return nil
}

// Prepare marks a locked, empty directory as an unfinished copy. Lock refuses it until
// Finish.
func Prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("prepare %s: %w", dir, err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			return fmt.Errorf("%s is not empty: it has %.100q; name an empty directory, or one that does not exist", dir, e.Name())
		}
	}
	err = write(osFS{}, dir+"/"+unfinishedName, []byte("This is a copy that is not finished. Remove the whole directory and copy again.\n"))
	if err == nil {
		err = (osFS{}).SyncDir(dir)
	}
	if err != nil {
		return failed("prepare "+dir, err)
	}
	return nil
}

// Finish makes a copy durable and usable.
func Finish(dir string) error {
	syscall.Sync() // syncing hundreds of thousands of files one by one would take hours
	err := os.Remove(dir + "/" + unfinishedName)
	if err == nil {
		err = (osFS{}).SyncDir(dir)
	}
	if err != nil {
		return failed("finish "+dir, err)
	}
	return nil
}

// OpenArchive returns the archive of a data directory.
func OpenArchive(cfg ArchiveConfig) (*Archive, error) {
	a := &Archive{cfg: cfg, fs: osFS{}, root: cfg.Dir + "/agents", deleted: make(map[string]string)}
	for _, dir := range []string{a.root, a.quarantine()} {
		if err := a.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, failed("open "+dir, err)
		}
	}
	return a, a.findDeleted()
}

func (a *Archive) quarantine() string { return a.cfg.Dir + "/quarantine" }

// findDeleted finds the folders of deleted agents.
func (a *Archive) findDeleted() error {
	entries, err := a.fs.ReadDir(a.quarantine())
	if err != nil {
		return failed("open "+a.quarantine(), err)
	}
	pieces := 0
	for _, e := range entries {
		id, at, _ := strings.Cut(e.Name(), "-")
		if _, err := strconv.ParseInt(at, 10, 64); err != nil || !e.IsDir() || claybot.AgentID(id).Validate() != nil {
			pieces++
			continue
		}
		if other, twice := a.deleted[id]; twice {
			a.remark("quarantine/%s stays: the agent is in quarantine/%s as well", e.Name(), other)
			continue
		}
		a.deleted[id] = e.Name()
	}
	if pieces > 0 {
		a.remark("quarantine/ has %d damaged pieces of files, which stay where they are", pieces)
	}
	return nil
}

func (a *Archive) remark(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(a.remarks, text) && len(a.remarks) < mostRemarks {
		a.remarks = append(a.remarks, text)
	}
}

// mostRemarks is the maximum number of remarks.
const mostRemarks = 100

// Remarks implements storage.Portable.
func (a *Archive) Remarks() []string { return a.remarks }

// folder returns the directory of an agent.
func (a *Archive) folder(agent string) string {
	if a.single != "" {
		return a.single
	}
	if name, ok := a.deleted[agent]; ok {
		return a.quarantine() + "/" + name
	}
	return a.root + "/" + agent
}

// Rows implements storage.Portable.
func (a *Archive) Rows(ctx context.Context, t storage.Table) iter.Seq2[storage.Row, error] {
	switch t.Name {
	case storage.TableAgents:
		return a.agents(ctx, t)
	case storage.TableQuarantine:
		return a.quarantined()
	case storage.TableRecords:
		return a.perAgent(ctx, t.Agent, a.records)
	case storage.TableResults:
		return a.perAgent(ctx, t.Agent, a.results)
	case storage.TableDocuments:
		return a.documents(ctx, t)
	case storage.TableTree:
		return a.tree(ctx)
	case storage.TableCheckpoints:
		return a.marks(ctx, t)
	case storage.TableSettings:
		return a.settings(ctx, t)
	}
	return a.cfg.Tables.Rows(ctx, t)
}

// Load implements storage.Portable.
func (a *Archive) Load(ctx context.Context, t storage.Table, rows iter.Seq2[storage.Row, error]) error {
	var err error
	switch t.Name {
	case storage.TableAgents:
		err = a.loadAgents(ctx, t, rows)
	case storage.TableQuarantine:
		err = each(ctx, rows, a.loadDeleted)
	case storage.TableRecords:
		err = errors.Join(each(ctx, rows, a.loadRecord), a.closeHistory())
	case storage.TableResults:
		err = each(ctx, rows, a.loadResult)
	case storage.TableDocuments:
		err = a.loadDocuments(ctx, t, rows)
	case storage.TableTree:
		err = a.loadTree(ctx, rows)
	case storage.TableSettings:
		err = a.loadSettings(ctx, t, rows)
	default:
		return a.cfg.Tables.Load(ctx, t, rows)
	}
	if err != nil && full(err) {
		return fmt.Errorf("%w: %w", storage.ErrFull, err)
	}
	return err
}

// WriteAgent writes the folder of one agent of another store into an empty directory;
// storage.ErrNotFound when there is no such agent.
func WriteAgent(ctx context.Context, dir string, from storage.Portable, agent string) error {
	a := &Archive{fs: osFS{}, single: dir}
	found := false
	of := func(name string) iter.Seq2[storage.Row, error] {
		t := storage.TableOf(name)
		t.Agent = agent
		return from.Rows(ctx, t)
	}
	t := storage.TableOf(storage.TableAgents)
	id, descriptor, created := t.Column("id"), t.Column("descriptor"), t.Column("created_at")
	heard, usage := t.Column("last_user_at"), t.Column("usage")
	err := each(ctx, of(t.Name), func(r storage.Row) error {
		found = true
		state := withTotals(r[len(r)-1], number(r[heard]), text(r[usage]))
		return a.makeFolder(dir, text(r[id]), text(r[descriptor]), claybot.Time(number(r[created])), state)
	})
	if err == nil && found {
		err = each(ctx, of(storage.TableSettings), a.putSettings)
	}
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	if err == nil {
		err = errors.Join(each(ctx, of(storage.TableRecords), a.loadRecord), a.closeHistory())
	}
	if err == nil {
		err = each(ctx, of(storage.TableResults), a.loadResult)
	}
	if err == nil {
		for f, err := range from.Files(ctx, agent) {
			if err == nil {
				err = a.LoadFile(ctx, f)
			}
			if err != nil {
				return failed("write the files of agent "+agent, err)
			}
		}
	}
	if err != nil {
		return failed("write agent "+agent, err)
	}
	return nil
}

// each calls load for every row.
func each(ctx context.Context, rows iter.Seq2[storage.Row, error], load func(r storage.Row) error) error {
	for r, err := range rows {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = load(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ids yields all agents, the deleted ones last, or only one.
func (a *Archive) ids(ctx context.Context, only string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if only != "" {
			yield(only, nil)
			return
		}
		for r, err := range a.cfg.Tables.Rows(ctx, storage.Table{Name: storage.TableAgents, Columns: []string{"id"}}) {
			id := ""
			if err == nil {
				id = text(r[0])
			}
			if !yield(id, err) {
				return
			}
		}
		deleted := make([]string, 0, len(a.deleted))
		for id := range a.deleted {
			deleted = append(deleted, id)
		}
		slices.Sort(deleted)
		for _, id := range deleted {
			if !yield(id, context.Cause(ctx)) {
				return
			}
		}
	}
}

// perAgent yields what list yields of each agent.
func (a *Archive) perAgent(ctx context.Context, only string, list func(agent string, yield func(storage.Row) bool) (bool, error)) iter.Seq2[storage.Row, error] {
	return func(yield func(storage.Row, error) bool) {
		for id, err := range a.ids(ctx, only) {
			more := true
			if err == nil {
				more, err = list(id, func(r storage.Row) bool { return yield(r, nil) })
			}
			if err != nil {
				yield(nil, fmt.Errorf("agent %s: %w", id, err))
				return
			}
			if !more {
				return
			}
		}
	}
}

// text is a value that is a text, or empty.
func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}
