package postgres

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/claybot/claybot/storage/postgres/postgrestest"
)

// A slowLine is a connection on which the next answer comes late.
type slowLine struct {
	net.Conn
	late *atomic.Int64 // nanoseconds
}

func (l slowLine) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	time.Sleep(time.Duration(l.late.Swap(0)))
	return n, err
}

// A slow answer does not set the clock off: it is taken only where nothing better is
// known. The time of the bubble passes in the answers alone, so all is exact.
func TestClockTakesGoodAnswers(t *testing.T) {
	server := postgrestest.Shared(t)
	address := server.Database(t)
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int64
		conn := lateConn(t, address, &late)
		defer conn.Close(context.WithoutCancel(t.Context()))
		var c clock
		for _, step := range []struct {
			name        string
			pause, late time.Duration
			taken       bool
		}{
			{"the first one, however slow", 0, 10 * time.Second, true},
			{"a better one", 0, 0, true},
			{"a slow one", time.Second, 10 * time.Second, false},
			{"the next slow one", time.Minute, slowAnswer + time.Millisecond, false},
			{"one that is just good", time.Minute, slowAnswer, true},
			{"a slow one while the good one is fresh", keepAnswer - 2*time.Second, time.Second, false},
			{"a slow one after that", time.Second, time.Second, true},
			{"a good one", 0, 0, true},
		} {
			time.Sleep(step.pause)
			at, then, now, skew := c.at, c.then, c.now(), c.skew()
			began := time.Now()
			late.Store(int64(step.late))
			if err := c.measure(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != step.late {
				t.Fatalf("%s took %v, want %v", step.name, took, step.late)
			}
			if step.taken {
				if want := began.Add(step.late / 2); !c.at.Equal(want) || c.then < then {
					t.Errorf("%s: the clock is of %v and says %d, want %v and no less than %d", step.name, c.at, c.then, want, then)
				}
				if want := c.at.UnixMilli() - c.then; c.skew().Milliseconds() != want {
					t.Errorf("%s: skew %v, want %d ms", step.name, c.skew(), want)
				}
				continue
			}
			if !c.at.Equal(at) || c.then != then || c.skew() != skew {
				t.Errorf("%s: the clock is of %v and says %d, skew %v; it was of %v and said %d, skew %v", step.name, c.at, c.then, c.skew(), at, then, skew)
			}
			if moved := c.now() - now; moved != step.late.Milliseconds() {
				t.Errorf("%s: the clock went on by %d ms in %v", step.name, moved, step.late)
			}
		}
	})
}

// lateConn is a connection of which late says how late the next answer comes.
func lateConn(t *testing.T, address string, late *atomic.Int64) *pgx.Conn {
	t.Helper()
	cfg, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return slowLine{c, late}, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// An answer that comes late does not make the clocks look as if they were apart.
func TestExamineClockLate(t *testing.T) {
	address := postgrestest.Shared(t).Database(t)
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int64
		conn := lateConn(t, address, &late)
		defer conn.Close(context.WithoutCancel(t.Context()))
		x := &examination{conn: conn}
		late.Store(int64(time.Hour))
		x.clock(t.Context())
		var good clock
		if err := good.measure(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
		// The time of a bubble is far from that of a server, so there is a warning.
		if len(x.all) != 1 || x.all[0].What != "clock" || x.all[0].Level != LevelWarning {
			t.Fatalf("found %+v", x.all)
		}
		text, _, _ := strings.Cut(strings.TrimPrefix(x.all[0].Text, "the clock of this machine is "), " ")
		said, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		if off := (said - good.skew()).Abs(); off > 15*time.Minute { // half of the hour, if the late answer were taken
			t.Errorf("it says %v, and the clock is off by %v", said, good.skew())
		}
	})
}
