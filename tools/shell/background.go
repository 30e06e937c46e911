package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/texts"
	"github.com/claybot/claybot/tools"
	"github.com/claybot/claybot/workspace"
)

// The tools for background processes.
const (
	processList  = "process_list"
	processLog   = "process_log"
	processInput = "process_input"
	processStop  = "process_stop"
)

// Commanding are the tools by which a model commands a workspace.
var Commanding = []string{Name, processInput}

// Limits of background processes, of each workspace.
const (
	maxRunning  = 8
	keepEnded   = 20
	maxLog      = 8 << 20 // bytes of a log, however a shell counts
	logBlocks   = 8192    // of 512 bytes, or of 1024
	maxShown    = 16 << 10
	maxInput    = 64 << 10
	inputTime   = 5 * time.Second
	folderTime  = 30 * time.Second
	processesIn = ".claybot/processes"
)

// The folder of a process in its workspace, by its number, has these files: command, began
// (seconds of Unix time), log, exit (its exit code) and stopped, if process_stop ended it.

// newFolder makes a folder for the command on its standard input, and writes its number and
// where it is. It removes what ended longest ago: $1 is how many folders stay, $2 the numbers
// of those that run.
const newFolder = `mkdir -p ` + processesIn + ` && cd ` + processesIn + ` || exit 1
n=1
for f in *; do case $f in *[!0-9]*) ;; *) [ "$f" -ge "$n" ] && n=$((f+1)) ;; esac; done
until mkdir "$n"; do [ -e "$n" ] || exit 1; n=$((n+1)); done
cat > "$n/command" && date +%s > "$n/began" || exit 1
ls | grep -x '[0-9][0-9]*' | sort -rn | tail -n +$(($1+1)) | while read -r old; do
	case " $2 " in *" $old "*) ;; *) rm -rf -- "$old" ;; esac
done
echo "$n"
pwd -P`

// inFolder runs the command $c, and writes what it says to a log of bounded length; what
// comes later is dropped.
const inFolder = `{ /bin/sh -c "$c" 2>&1; echo $? > "$d/code"; } | { (ulimit -f %d 2>/dev/null; exec cat > "$d/log") 2>/dev/null; cat > /dev/null; }
mv -f -- "$d/code" "$d/exit"`

// listFolders writes a line for each process.
const listFolders = `cd ` + processesIn + ` 2>/dev/null || exit 0
ls | grep -x '[0-9][0-9]*' | sort -n | while read -r n; do
	[ -e "$n/command" ] || continue
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$n" "$(head -c 20 "$n/exit" 2>/dev/null)" "$([ -e "$n/stopped" ] && echo stopped)" \
		"$(head -c 20 "$n/began")" "$(cat "$n/log" 2>/dev/null | wc -c)" "$(head -n 1 "$n/command" | cut -c 1-200)"
done`

// background starts a command that goes on, and says how it is reached.
func background(ctx context.Context, w workspace.Workspace, command, dir string) (string, error) {
	l, ok := w.(workspace.Launcher)
	if !ok {
		return "", &tools.Fault{Code: tools.FaultFailed, Text: "this workspace cannot run commands in the background"}
	}
	running := l.Launched()
	if len(running) >= maxRunning {
		return "", &tools.Fault{Code: tools.FaultRate, Text: fmt.Sprintf("%d processes run in the background already, the limit is %d; end one with %s", len(running), maxRunning, processStop)}
	}
	ids := make([]string, 0, len(running))
	for id := range running {
		ids = append(ids, id)
	}
	r, err := w.Exec(ctx, workspace.Command{
		Args: []string{"/bin/sh", "-c", newFolder, "sh", strconv.Itoa(keepEnded), strings.Join(ids, " ")},
		Dir:  ".", Wall: folderTime, Stdin: []byte(command),
	})
	if err != nil {
		return "", err
	}
	id, at, ok := strings.Cut(strings.TrimSuffix(r.Output, "\n"), "\n")
	if r.ExitCode != 0 || !ok {
		return "", &tools.Fault{Code: tools.FaultFailed, Text: "the list of background processes cannot be written: " + r.Output}
	}
	script := fmt.Sprintf("d=%s c=%s\n"+inFolder, quoted(at+"/"+id), quoted(command), logBlocks)
	if err := l.Launch(ctx, id, workspace.Command{Shell: script, Dir: dir}); err != nil {
		return "", err
	}
	return id, nil
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// A process is a background process of a workspace.
type process struct {
	id, command, state string
	running            bool
	bytes              int64
	began              time.Time
}

// processes are those of a workspace, the oldest first.
func processes(ctx context.Context, w workspace.Workspace) ([]process, error) {
	var running map[string]workspace.Process
	if l, ok := w.(workspace.Launcher); ok {
		running = l.Launched() // before the look: what ends meanwhile has an exit code
	}
	r, err := w.Exec(ctx, workspace.Command{Args: []string{"/bin/sh", "-c", listFolders}, Dir: ".", Wall: folderTime})
	if err != nil {
		return nil, err
	}
	var all []process
	for line := range strings.Lines(r.Output) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 6)
		if len(f) < 6 {
			continue // a file that a command wrote there
		}
		p := process{id: f[0], command: f[5]}
		p.bytes, _ = strconv.ParseInt(strings.TrimSpace(f[4]), 10, 64)
		if at, err := strconv.ParseInt(f[3], 10, 64); err == nil {
			p.began = time.Unix(at, 0).UTC()
		}
		_, runs := running[p.id]
		switch {
		case f[2] != "" && !runs: // it may have written an exit code while it ended
			p.state = "stopped by " + processStop
		case f[1] != "":
			p.state = "ended with exit code " + f[1]
		case runs:
			p.state, p.running = "runs", true
		default:
			p.state = "was ended: the workspace was stopped, or claybot restarted"
		}
		all = append(all, p)
	}
	return all, nil
}

// kit is what the tools for background processes share.
type kit struct {
	open    func(ctx context.Context, env tools.Env) (workspace.Workspace, error)
	network func(env tools.Env) string
	reaches func(env tools.Env, args json.RawMessage) tools.Class
	writing *writers
}

func (k kit) spec(name, description string, effect tools.Effect) tools.Spec {
	return tools.Spec{Tool: llm.Tool{Name: name, Description: description}, Effect: effect, Class: tools.Inside, Scopes: []string{tools.ScopeShell}}
}

// at opens the workspace of a call and finds a process in it.
func (k kit) at(ctx context.Context, env tools.Env, id string) (workspace.Workspace, process, error) {
	w, err := k.open(ctx, env)
	if err != nil {
		return nil, process{}, tools.WorkspaceFault(err)
	}
	all, err := processes(ctx, w)
	if err != nil {
		return nil, process{}, tools.WorkspaceFault(err)
	}
	i := slices.IndexFunc(all, func(p process) bool { return p.id == id })
	if i < 0 {
		return nil, process{}, invalid("field id: there is no process %.80q; %s shows which there are", id, processList)
	}
	return w, all[i], nil
}

func (k kit) result(env tools.Env, text string) tools.Result {
	return tools.Result{Text: text, Untrusted: LetsIn(k.network(env))}
}

func (k kit) tools() []tools.Tool { return []tools.Tool{k.list(), k.log(), k.input(), k.stop()} }

func (k kit) list() tools.Tool {
	s := k.spec(processList, "Lists the background processes of your workspace, started with background: true of shell, with their state and the bytes of their output.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, _ struct{}) (tools.Result, error) {
		w, err := k.open(ctx, env)
		if err != nil {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		all, err := processes(ctx, w)
		if err != nil {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		if len(all) == 0 {
			return tools.Result{Text: "(no background process)"}, nil
		}
		var b strings.Builder
		for _, p := range all {
			fmt.Fprintf(&b, "%s: %s, started %s, %d bytes of output: %s\n", p.id, p.state, p.began.Format(time.DateTime+" MST"), p.bytes, p.command)
		}
		return k.result(env, b.String()), nil
	})
}

func (k kit) log() tools.Tool {
	type input struct {
		ID     string `json:"id" jsonschema:"the number of the process"`
		Offset *int64 `json:"offset,omitempty" jsonschema:"the first byte to show; when absent, the end is shown"`
		Limit  int64  `json:"limit,omitempty" jsonschema:"how many bytes, at most 16384; 8192 when absent"`
	}
	s := k.spec(processLog, "Shows output of a background process. The first 4 MiB are kept.", tools.ReadOnly)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if in.Limit < 0 || in.Limit > maxShown || in.Offset != nil && *in.Offset < 0 {
			return tools.Result{}, invalid("field offset or limit: want 0 or more, and a limit of at most %d", maxShown)
		}
		if in.Limit == 0 {
			in.Limit = maxShown / 2
		}
		w, p, err := k.at(ctx, env, in.ID)
		if err != nil {
			return tools.Result{}, err
		}
		b, err := w.ReadFile(ctx, processesIn+"/"+p.id+"/log", maxLog)
		if err != nil && !workspace.Is(err, workspace.NotFound) {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		size := int64(len(b))
		from := max(size-in.Limit, 0)
		if in.Offset != nil {
			from = min(*in.Offset, size)
		}
		to := min(from+in.Limit, size)
		for to < size && to > from+utf8.UTFMax && !utf8.RuneStart(b[to]) {
			to-- // the next part begins with the whole character
		}
		text := fmt.Sprintf("[process %s %s; bytes %d to %d of %d", p.id, p.state, from, to, size)
		if to < size || p.running {
			text += fmt.Sprintf("; go on with offset %d", to)
		}
		return k.result(env, text+"]\n"+strings.ToValidUTF8(string(b[from:to]), "\uFFFD")), nil
	})
}

func (k kit) input() tools.Tool {
	type input struct {
		ID   string `json:"id" jsonschema:"the number of the process"`
		Text string `json:"text,omitempty" jsonschema:"what it reads, with a line break where one is to be"`
		End  bool   `json:"end,omitempty" jsonschema:"true: its input ends after the text"`
	}
	s := k.spec(processInput, "Writes to the input of a background process, as typed by a person.", tools.Once)
	s.Whole, s.Reaches = "text", k.reaches
	s.Listed = func(env tools.Env, _ json.RawMessage) bool { return !env.Tainted }
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		if len(in.Text) > maxInput || in.Text == "" && !in.End {
			return tools.Result{}, invalid("field text: want 1 to %d bytes, or end: true", maxInput)
		}
		w, p, err := k.at(ctx, env, in.ID)
		if err != nil {
			return tools.Result{}, err
		}
		l, _ := w.(workspace.Launcher)
		if !p.running || l == nil {
			return tools.Result{}, &tools.Fault{Code: tools.FaultFailed, Text: fmt.Sprintf("process %s %s", p.id, p.state)}
		}
		if err := k.writing.write(ctx, l.Launched()[p.id], in.Text, in.End); err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Text: fmt.Sprintf("%d bytes are written", len(in.Text)), What: fmt.Sprintf(texts.DidWriteProcess, p.id)}, nil
	})
}

// writers are the processes of which an input is not read yet. Each has one, so that inputs arrive
// in their order.
type writers struct{ busy sync.Map }

// write writes to a process, which may have ended, or not read.
func (w *writers) write(ctx context.Context, p workspace.Process, text string, end bool) error {
	if p == nil {
		return &tools.Fault{Code: tools.FaultFailed, Text: "the process has ended meanwhile"}
	}
	if _, busy := w.busy.LoadOrStore(p, true); busy {
		return &tools.Fault{Code: tools.FaultRate, Text: "the process has not read its earlier input yet; this one is not written"}
	}
	done := make(chan error, 1)
	go func() {
		_, err := p.Write([]byte(text))
		if err == nil && end {
			err = p.CloseWrite()
		}
		w.busy.Delete(p)
		done <- err
	}()
	late := time.NewTimer(inputTime)
	defer late.Stop()
	select {
	case err := <-done:
		if err != nil {
			return &tools.Fault{Code: tools.FaultFailed, Text: "the process takes no input: it has ended, or its input has"}
		}
		return nil
	case <-late.C:
		return &tools.Fault{Code: tools.FaultTimeout, Text: fmt.Sprintf("the process has not read its input for %s; it gets the text once it reads", inputTime)}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (k kit) stop() tools.Tool {
	type input struct {
		ID string `json:"id" jsonschema:"the number of the process"`
	}
	s := k.spec(processStop, "Ends a background process with all that it started.", tools.Idempotent)
	return tools.New(s, func(ctx context.Context, env tools.Env, in input) (tools.Result, error) {
		w, p, err := k.at(ctx, env, in.ID)
		if err != nil {
			return tools.Result{}, err
		}
		l, _ := w.(workspace.Launcher)
		if !p.running || l == nil {
			return tools.Result{Text: fmt.Sprintf("process %s does not run: it %s", p.id, p.state)}, nil
		}
		if err := w.WriteFile(ctx, processesIn+"/"+p.id+"/stopped", nil); err != nil {
			return tools.Result{}, tools.WorkspaceFault(err)
		}
		if running := l.Launched()[p.id]; running != nil {
			_ = running.Close()
		}
		return tools.Result{Text: "process " + p.id + " is stopped", What: fmt.Sprintf(texts.DidStopProcess, p.id)}, nil
	})
}
