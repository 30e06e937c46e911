package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/claybot/claybot"
)

// SaveResult keeps text as agents/<id>/results/<call>.txt, durably and whole or
// not at all, and returns that path below the data directory. Any call makes a
// safe name, and different calls make different ones.
func (s *Store) SaveResult(ctx context.Context, id claybot.AgentID, call, text string) (string, error) {
	name := resultName(call)
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

// nameLimit is the longest call that is a file name as it is.
const nameLimit = 64

// resultName is the file name for a call id, which a model made up. One that
// is not a plain word gets its hash; the dot keeps the two kinds apart.
func resultName(call string) string {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			return c
		}
		return -1
	}, call)
	if plain == call && plain != "" && len(plain) <= nameLimit {
		return plain + ".txt"
	}
	if plain == "" {
		plain = "call"
	}
	return fmt.Sprintf("%s.%x.txt", plain[:min(len(plain), nameLimit/2)], sha256.Sum256([]byte(call)))
}
