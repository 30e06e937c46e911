package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// Standby makes a copy of the server that follows it and can only be read. It ends
// with Close, or with its primary.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	f, err := newFolder(s.config.Dir, s.programs)
	if err != nil {
		return nil, fmt.Errorf("make a standby: %w", err)
	}
	c := &Server{config: s.config, programs: s.programs, folder: f, data: filepath.Join(f.path, "data"), primary: s}
	err = s.programs.run(ctx, "pg_basebackup", "-D", c.data, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync",
		"-d", fmt.Sprintf("host=%s port=%d user=%s", quote(s.Sockets()), s.port, User))
	if err == nil {
		err = c.startAnywhere(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a standby: %w", err), c.Close())
	}
	s.remember(c)
	return c, nil
}

// CatchUp waits until a standby has all that its primary has committed.
func (s *Server) CatchUp(ctx context.Context) error {
	if s.primary == nil {
		return errors.New("catch up: not a standby")
	}
	rows, err := s.primary.Query(ctx, "", "SELECT pg_current_wal_lsn()")
	if err != nil {
		return fmt.Errorf("catch up: %w", err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		has, err := s.Query(ctx, "", "SELECT pg_last_wal_replay_lsn() >= '"+rows[0][0]+"'")
		if err != nil {
			return fmt.Errorf("catch up: %w", err)
		}
		if has[0][0] == "t" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("catch up: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// Promote makes a standby a server of its own that can be written, and returns when
// it can.
func (s *Server) Promote(ctx context.Context) error {
	done, err := s.Query(ctx, "", fmt.Sprintf("SELECT pg_promote(true, %d)", int(patience.Seconds())))
	if err == nil && done[0][0] != "t" {
		err = fmt.Errorf("it still follows after %v", patience)
	}
	if err != nil {
		return fmt.Errorf("promote: %w", err)
	}
	return nil
}

// Configure changes a setting of a running server without a restart (ALTER SYSTEM),
// such as default_transaction_read_only. It also stays across restarts.
func (s *Server) Configure(ctx context.Context, setting, value string) error {
	for _, sql := range []string{
		"ALTER SYSTEM SET " + setting + " = '" + strings.ReplaceAll(value, "'", "''") + "'",
		"SELECT pg_reload_conf()",
	} {
		if _, err := s.Query(ctx, "", sql); err != nil {
			return fmt.Errorf("configure %s: %w", setting, err)
		}
	}
	return nil
}
