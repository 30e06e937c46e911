package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// SaveResult keeps text as agents/<id>/results/<call>.txt, durably and whole or
// not at all, and returns that path below the data directory. Any call makes a
// safe name, and different calls make different ones.
func (s *Store) SaveResult(ctx context.Context, id claybot.AgentID, call, text string) (string, error) {
	name := storage.ResultName(call)
	err := s.with(ctx, id, func(*resident) error {
		dir := s.dir(id) + "/results"
		err := s.fs.Mkdir(dir)
		if err == nil {
			err = s.fs.SyncDir(s.dir(id))
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return replace(s.fs, dir, name, []byte(text))
	})
	if err != nil {
		return "", failed(fmt.Sprintf("save a tool result of agent %s", id), err)
	}
	return "agents/" + string(id) + "/results/" + name, nil
}
