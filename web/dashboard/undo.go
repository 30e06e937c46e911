package dashboard

import (
	"context"
	"errors"
	"net/http"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/web"
)

// undoRows is how many effects of a run are shown.
const undoRows = 100

// An undoView is what a run that has ended did to the world.
type undoView struct {
	Effects []claybot.Undo
	More    int
	Can     int // how many can be taken back
	// By is the run that took them back or does so now, empty when that may be
	// asked for: an undo that began nothing does not count.
	By    claybot.RunID
	State claybot.RunState // of that run
}

// Over reports whether what takes the effects back has ended.
func (v undoView) Over() bool { return v.State.Ended() }

// readUndo is what can be taken back of a run; nil where there is nothing to
// say.
func (b *runPages) readUndo(ctx context.Context, run claybot.Run) (*undoView, error) {
	if !run.State.Ended() || len(run.Undo) == 0 || run.UndoOf != "" {
		return nil, nil
	}
	v := &undoView{}
	for _, u := range run.Undo {
		if u.Call != nil {
			v.Can++
		}
	}
	v.Effects, v.More = cut(run.Undo, undoRows)
	var err error
	if v.By, err = b.undos.UndoneBy(ctx, run.ID); err != nil || v.By == "" {
		return v, err
	}
	by, err := b.runs.Run(ctx, v.By)
	v.State = by.State
	return v, ignoreGone(err)
}

// undoes is the run that a run takes back, empty for others. Until its end its
// messages alone say so.
func (b *runPages) undoes(ctx context.Context, run claybot.Run) (claybot.RunID, error) {
	if run.UndoOf != "" || run.Engine != claybot.EngineUndo {
		return run.UndoOf, nil
	}
	for _, id := range run.Messages {
		stories, err := b.system.Why(ctx, string(id))
		if ignoreGone(err) != nil {
			return "", err
		}
		for _, s := range stories {
			if m := s.Message; m.ID == id && m.Undo != nil {
				return m.Undo.Run, nil
			}
		}
	}
	return "", nil
}

func (b *runPages) undoRun(r *http.Request) (string, error) {
	_, err := b.undos.UndoRun(r.Context(), claybot.RunID(r.PathValue("id")), web.User(r))
	return "Taking it back, the newest first.", err
}

// ignoreGone leaves out that something is not there any more.
func ignoreGone(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
