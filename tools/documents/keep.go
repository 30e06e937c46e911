package documents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/tools/textfile"
)

// What an agent's runs have changed is kept aside, so that it can be taken back:
//
//	<run>/run.json  which files, and what the run made of them
//	<run>/0, 1, …   what was in them before
//
// The old content is durable before the new one is written, and run.json says
// beforehand what will be written. So after a crash at any point it is known
// whether a file is still as the run left it.
const (
	runFile = "run.json"
	// keptRuns is of how many runs an agent's files are kept aside.
	keptRuns = 10
	// keptBytes is the most that is kept aside for an agent.
	keptBytes = 64 << 20
	// maxStates is how many contents of one file by one run are known, the newest.
	maxStates = 16
)

type journal struct {
	Run   claybot.RunID `json:"run"`
	At    claybot.Time  `json:"at"` // of the first change
	Files []change      `json:"files"`
}

// A change is one file that a run has changed.
type change struct {
	Path string `json:"path"`
	// Was is where the content from before lies: nowhere when there was no file,
	// or when Lost says why it is not kept.
	Was  string `json:"was,omitempty"`
	Lost string `json:"lost,omitempty"`
	// Tainted: the content from before is untrusted.
	Tainted bool `json:"tainted,omitempty"`
	// Made are the sums of what the run has written, or was about to; removed where it
	// deleted the file.
	Made []string `json:"made"`
	// By is the call whose sum is the last of Made.
	By string `json:"by,omitempty"`
}

// removed stands for no file where a sum stands for its content.
const removed = "removed"

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:16])
}

var plainName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

func runFolder(run claybot.RunID) string {
	if plainName.MatchString(string(run)) {
		return string(run)
	}
	return "x-" + sum(string(run))
}

// writeKept writes a file for a call, after what it replaces is kept aside.
// tainted: the text is untrusted, or a tainted run wrote it. The result has the undo
// call; its text is the caller's.
func writeKept(ctx context.Context, files Backend, env tools.Env, path, text string, tainted bool) (tools.Result, error) {
	if err := writable(path, text); err != nil {
		return tools.Result{}, err
	}
	kept, err := keep(ctx, files, env, path, sum(text))
	if err != nil {
		return tools.Result{}, err
	}
	if err := put(ctx, files, path, text, tainted); err != nil {
		return tools.Result{}, err
	}
	return changed(env, path, kept), nil
}

// removeKept deletes a file for a call, after its content is kept aside.
func removeKept(ctx context.Context, files Backend, env tools.Env, path string) (tools.Result, error) {
	kept, err := keep(ctx, files, env, path, removed)
	if err != nil {
		return tools.Result{}, err
	}
	if err := files.Remove(ctx, path); err != nil {
		return tools.Result{}, err
	}
	return changed(env, path, kept), nil
}

func changed(env tools.Env, path string, kept bool) tools.Result {
	r := tools.Result{What: fmt.Sprintf(texts.DidChangeFiles, textfile.Cut(path, 200))}
	if kept {
		args, _ := json.Marshal(restoring{Run: env.Run}) // a string always marshals
		r.Undo = &claybot.ToolCall{Name: RestoreTool, Args: string(args)}
	}
	return r
}

// keep prepares that path is written or deleted by a call, which makes it what made says. It
// reports false where nothing is kept: outside of runs, and when a run takes back another one.
func keep(ctx context.Context, files Backend, env tools.Env, path, made string) (bool, error) {
	if env.Run == "" || env.Undo {
		return false, nil
	}
	aside, ok := files.aside(env.Agent.ID)
	if !ok {
		return false, nil
	}
	folder := runFolder(env.Run)
	j, err := readJournal(ctx, aside, folder)
	switch {
	case hasCode(err, NoEntry):
		j = journal{Run: env.Run, At: claybot.Now()}
	case err != nil:
		return false, err
	}
	i := slices.IndexFunc(j.Files, func(c change) bool { return c.Path == path })
	if i < 0 {
		c, err := keepOld(ctx, files, aside, folder, path, len(j.Files))
		if err != nil {
			return false, err
		}
		i, j.Files = len(j.Files), append(j.Files, c)
	}
	c := &j.Files[i]
	c.Made = append(slices.DeleteFunc(c.Made, func(sum string) bool { return sum == made }), made)
	c.Made, c.By = c.Made[max(len(c.Made)-maxStates, 0):], env.CallID
	b, err := json.Marshal(j)
	if err != nil {
		return false, broken("keeping what was there before", err)
	}
	return true, aside.Write(ctx, folder+"/"+runFile, string(b))
}

// wrote reports whether a call has made a file exactly this text. A call that was cut off before its
// write has announced another text than the file has; of a call behind which another one has written
// the file in the same run, nothing is known.
func wrote(ctx context.Context, files Backend, env tools.Env, path, text string) (bool, error) {
	aside, ok := files.aside(env.Agent.ID)
	if !ok || env.Run == "" || env.CallID == "" || env.Undo {
		return false, nil
	}
	j, err := readJournal(ctx, aside, runFolder(env.Run))
	if hasCode(err, NoEntry) {
		return false, nil
	}
	i := slices.IndexFunc(j.Files, func(c change) bool { return c.Path == path })
	if err != nil || i < 0 || j.Files[i].By != env.CallID {
		return false, err
	}
	made := j.Files[i].Made
	return len(made) > 0 && made[len(made)-1] == sum(text), nil
}

func keepOld(ctx context.Context, files, aside Backend, folder, path string, n int) (change, error) {
	c := change{Path: path}
	old, err := files.Read(ctx, path)
	switch {
	case hasCode(err, NoEntry):
		return c, makeRoom(ctx, aside, folder, 0)
	case hasCode(err, Invalid):
		c.Lost = "it was too large, or no file that can be read"
		return c, makeRoom(ctx, aside, folder, 0)
	case err != nil:
		return c, err
	}
	if err := makeRoom(ctx, aside, folder, int64(len(old))); err != nil {
		return c, err
	}
	if c.Tainted, err = untrusted(ctx, files, path); err != nil {
		return c, err
	}
	c.Was = strconv.Itoa(n)
	return c, aside.Write(ctx, folder+"/"+c.Was, old)
}

// readJournal reads what a run has changed; NoEntry when nothing is known.
func readJournal(ctx context.Context, aside Backend, folder string) (journal, error) {
	text, err := aside.Read(ctx, folder+"/"+runFile)
	if err != nil {
		return journal{}, err
	}
	var j journal
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return journal{}, broken("reading what was there before", err)
	}
	return j, nil
}

// makeRoom drops what is kept of the oldest runs until a run has a place, and
// more bytes fit.
func makeRoom(ctx context.Context, aside Backend, folder string, more int64) error {
	all, err := aside.List(ctx, "")
	if err != nil {
		return err
	}
	const slack = 1 << 20 // for the journals
	sizes := map[string]int64{folder: 0}
	total := more + slack
	for _, f := range all {
		run, _, _ := strings.Cut(f.Path, "/")
		sizes[run] += f.Size
		total += f.Size
	}
	if len(sizes) <= keptRuns && total <= keptBytes {
		return nil
	}
	type old struct {
		folder string
		at     claybot.Time
	}
	var runs []old
	for run := range sizes {
		if run == folder {
			continue
		}
		j, err := readJournal(ctx, aside, run)
		if err != nil && ctx.Err() != nil {
			return err
		}
		runs = append(runs, old{run, j.At}) // one that cannot be read is of no use
	}
	slices.SortFunc(runs, func(a, b old) int {
		if a.at != b.at {
			return int(min(max(a.at-b.at, -1), 1))
		}
		return strings.Compare(a.folder, b.folder)
	})
	left := len(sizes)
	for _, r := range runs {
		if left <= keptRuns && total <= keptBytes {
			break
		}
		if err := dropRun(ctx, aside, r.folder, all); err != nil {
			return err
		}
		left--
		total -= sizes[r.folder]
	}
	return nil
}

// dropRun removes what is kept of a run, its journal first: without it, the rest
// is the oldest there is.
func dropRun(ctx context.Context, aside Backend, folder string, all []File) error {
	if err := aside.Remove(ctx, folder+"/"+runFile); err != nil {
		return err
	}
	for _, f := range all {
		if strings.HasPrefix(f.Path, folder+"/") && f.Path != folder+"/"+runFile {
			if err := aside.Remove(ctx, f.Path); err != nil {
				return err
			}
		}
	}
	return nil
}

// RestoreTool is the name of the hidden tool that takes back what a run did to
// files.
const RestoreTool = "files_restore"

type restoring struct {
	Run claybot.RunID `json:"run" jsonschema:"the run whose changes of files are taken back"`
}

// restore makes files what they were before a run of the same agent. It is
// called by undo alone. A file that is not as the run left it was changed by
// another writer since: it stays, and the result says so. A second call comes to
// the same.
func restore(b Source) tools.Tool {
	s := spec(RestoreTool, "Restores the files that a run has changed.", tools.Idempotent)
	s.Hidden, s.Undoes = true, false
	return tools.New(s, func(ctx context.Context, env tools.Env, in restoring) (tools.Result, error) {
		files, err := b(env)
		if err != nil {
			return tools.Result{}, err
		}
		gone := fail(NoEntry, "what run %.80q has changed is not kept any more", in.Run)
		aside, ok := files.aside(env.Agent.ID)
		if !ok {
			return tools.Result{}, gone
		}
		folder := runFolder(in.Run)
		j, err := readJournal(ctx, aside, folder)
		if hasCode(err, NoEntry) {
			return tools.Result{}, gone
		}
		if err != nil {
			return tools.Result{}, err
		}
		var done, left []string
		for _, c := range slices.Backward(j.Files) {
			why, err := c.takeBack(ctx, files, aside, folder)
			switch {
			case err != nil && ctx.Err() != nil:
				return tools.Result{}, err
			case err != nil:
				left = append(left, fmt.Sprintf("%s (%v)", c.Path, err))
			case why != "":
				left = append(left, fmt.Sprintf("%s (%s)", c.Path, why))
			default:
				done = append(done, c.Path)
			}
		}
		return restored(done, left)
	})
}

func restored(done, left []string) (tools.Result, error) {
	text := "restored: " + textfile.Shown(done, "nothing")
	if len(left) == 0 {
		return tools.Result{Text: strings.ReplaceAll(text, "\n", ", ")}, nil
	}
	return tools.Result{}, &tools.Fault{
		Code: tools.FaultFailed,
		Text: strings.ReplaceAll(text+"\nleft as they are: "+textfile.Shown(left, ""), "\n", ", "),
	}
}

// takeBack gives a file the content from before. why says what stands against
// it; empty when the file is as it was.
func (c change) takeBack(ctx context.Context, files, aside Backend, folder string) (why string, err error) {
	old := ""
	if c.Was != "" {
		if old, err = aside.Read(ctx, folder+"/"+c.Was); err != nil {
			return "", err
		}
	}
	now, err := files.Read(ctx, c.Path)
	switch {
	case c.Was == "" && c.Lost == "" && (hasCode(err, NoEntry) || hasCode(err, IsFolder) || hasCode(err, NotFolder)):
		return "", nil // there is no such file, as before
	case hasCode(err, NoEntry) && !slices.Contains(c.Made, removed):
		return "it was removed since", nil
	case hasCode(err, NoEntry) && c.Lost == "":
		return "", put(ctx, files, c.Path, old, c.Tainted)
	case hasCode(err, NoEntry):
		return c.lost(), nil
	case hasCode(err, Invalid) && c.Lost != "": // it never was written
		return "", nil
	case hasCode(err, Invalid), hasCode(err, IsFolder), hasCode(err, NotFolder):
		return "it was changed since", nil
	case err != nil:
		return "", err
	case c.Was != "" && now == old:
		return "", nil
	case !slices.Contains(c.Made, sum(now)):
		return "it was changed since", nil
	case c.Lost != "":
		return c.lost(), nil
	case c.Was == "":
		return "", files.Remove(ctx, c.Path)
	}
	return "", put(ctx, files, c.Path, old, c.Tainted)
}

func (c change) lost() string { return "its content from before is not kept: " + c.Lost }
