package docker

import (
	"context"
	"io"
	"path"
	"time"

	"github.com/claybot/claybot/workspace"
)

// outputDir is where whole outputs are kept, below the workspace, and keepOutputs
// how many stay.
const (
	outputDir   = ".claybot/output"
	keepOutputs = "20"
)

// spillTime is how long the file of an output may take after the end of its
// command. A caller that stops the program that writes it waits no longer.
const spillTime = 20 * time.Second

const spillScript = `mkdir -p "${1%/*}" && cat > "$1" || exit 1
cd "${1%/*}" && ls -t | tail -n +$(($2+1)) | while read -r old; do rm -f -- "$old"; done; exit 0`

// A spill is the file of a whole output, written by a command of its own.
type spill struct {
	w      *Workspace
	name   string
	ctx    context.Context //nolint:containedctx // of the command that writes, which open starts
	cancel context.CancelFunc
	pipe   *io.PipeWriter
	done   chan struct{}
	err    error // of writing; set before done is closed
}

func (w *Workspace) spill(r *run) *spill {
	s := &spill{w: w.stilled(), name: path.Join(outputDir, r.mark[:12]+".txt")}
	s.ctx, s.cancel = context.WithCancel(w.p.ctx)
	return s
}

func (s *spill) open() (io.Writer, error) {
	r, w := io.Pipe()
	s.pipe, s.done = w, make(chan struct{})
	go func() {
		defer close(s.done)
		_, _, s.err = s.w.scriptFrom(s.ctx, spillScript, r, 64, path.Join(home, s.name), keepOutputs)
		_ = r.CloseWithError(io.ErrClosedPipe) // what is written now is lost
	}()
	return w, nil
}

// hurry ends the file a short while after the end of its command was asked for.
func (s *spill) hurry() {
	t := time.NewTimer(askTime + askTime/2)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
	s.cancel()
}

// close ends the file, and returns its name if it has what the text lacks. A
// second call says the same.
func (s *spill) close(out *workspace.Output, patience time.Duration) string {
	out.Close()
	if s.pipe == nil {
		return ""
	}
	_ = s.pipe.Close()
	if !wait(s.done, patience) {
		s.cancel()
		<-s.done
	}
	if _, lost := out.Whole(); s.err != nil || lost != nil || !out.Cut() {
		return ""
	}
	return s.name
}
