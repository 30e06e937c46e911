package connectors_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
)

func TestRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, fails := time.Now(), []error{errors.New("down"), &connectors.RetryError{After: time.Minute, Err: errors.New("busy")}, nil}
		next := func() (err error) { err, fails = fails[0], fails[1:]; return err }
		log := slog.New(slog.DiscardHandler)
		if !connectors.Retry(t.Context(), log, "failed", next) {
			t.Error("gave up")
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+time.Second {
			t.Errorf("tried for %v, want what was asked for and a second at most", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		tried := 0
		if connectors.Retry(ctx, log, "failed", func() error { tried++; cancel(); return errors.New("down") }) || tried != 1 {
			t.Errorf("tried %d times, and went on although the context had ended", tried)
		}
	})
}
