package sqlite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/relational"
)

// damagesEnv is how many random damages the sweeps make; the bar of the project is 400.
const damagesEnv = "CLAYBOT_TEST_DAMAGES"

func damages(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv(damagesEnv))
	if err != nil {
		return 10
	}
	return n
}

// populated makes a database of a few hundred pages in which agents have waiting
// messages, runs, outgoing messages and notes, and returns the contents of the file and
// of its log before it was closed, and of the file afterwards.
func populated(t *testing.T) (live, log, closed []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claybot.db")
	db, err := Open(t.Context(), path, Config{})
	if err != nil {
		t.Fatal(err)
	}
	long, lengths := strings.Repeat("a long text ", 900), rand.New(rand.NewPCG(1, 2))
	for i := range 16 {
		a := claybot.Agent{ID: claybot.AgentID(fmt.Sprintf("agent%019d", i)), Descriptor: claybot.User("telegram", fmt.Sprint("C", i), "U1")}
		err := db.IndexAgents(t.Context(), a)
		for k := range 4 {
			m := textMessage(claybot.MessageID(fmt.Sprintf("m%d-%d", i, k)))
			m.Text += long[:lengths.IntN(len(long))]
			_, perr := db.Post(t.Context(), storage.Posting{To: a.ID, Message: m, Replies: []claybot.Outgoing{
				{ID: fmt.Sprint("o/", m.ID), Kind: claybot.OutgoingNotice, Route: claybot.Route{Connector: "telegram", ChannelID: fmt.Sprint("C", i)}, Text: m.Text, Part: 1, Parts: 1},
			}})
			err = errors.Join(err, perr)
		}
		if i == 11 { // some of it is in the log alone
			err = errors.Join(err, checkpoint(t, db))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	live, log = read(path), read(path+"-wal")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return live, log, read(path)
}

func checkpoint(t *testing.T, db *DB) error {
	t.Helper()
	c, err := connect(t.Context(), db.path, writerPragmas)
	if err != nil {
		return err
	}
	return errors.Join(c.control("PRAGMA wal_checkpoint(FULL)"), c.close())
}

// everything is a digest of all rows of all tables.
func everything(t *testing.T, db *DB) (sum [32]byte, err error) {
	t.Helper()
	h := sha256.New()
	err = db.readFrom(t.Context(), db.reporter, func(c *conn) error {
		var tables []string
		err := c.Each("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name", func(r relational.Row) error {
			tables = append(tables, r.Str(0))
			return nil
		}, nil)
		for _, table := range tables {
			err = errors.Join(err, c.Each(`SELECT * FROM "`+table+`"`, func(r relational.Row) error {
				fmt.Fprintln(h, table, []any(r))
				return nil
			}, nil))
		}
		return err
	})
	return [32]byte(h.Sum(nil)), err
}

// hurt damages a copy of b at a random place, and says how.
func hurt(r *rand.Rand, b []byte) (damaged []byte, how string) {
	damaged = append([]byte(nil), b...)
	size := 512 << r.IntN(4) // to 4096
	block := func() []byte { at := r.IntN(len(b)/size) * size; return damaged[at : at+size] }
	switch r.IntN(5) {
	case 0, 1:
		at, bit := r.IntN(len(b)), r.IntN(8)
		damaged[at] ^= 1 << bit
		return damaged, fmt.Sprintf("bit %d of byte %d flipped", bit, at)
	case 2:
		clear(block())
		return damaged, fmt.Sprintf("%d bytes zeroed", size)
	case 3:
		x, y := block(), block()
		for i := range x {
			x[i], y[i] = y[i], x[i]
		}
		return damaged, fmt.Sprintf("blocks of %d bytes swapped", size)
	}
	at := 1 + r.IntN(len(b)-1)
	return damaged[:at], fmt.Sprintf("cut at %d", at)
}

// A damaged database is refused, or its damage is met before a row of it is believed;
// or it has every row that it had. However large it is: the second sweep goes without
// the check at the start.
func TestDamage(t *testing.T) {
	live, log, closed := populated(t)
	for _, tt := range []struct {
		name    string
		file    []byte
		log     []byte
		noCheck bool
	}{
		{name: "closed in order", file: closed},
		{name: "killed", file: live, log: log},
		{name: "too large to be read at the start", file: closed, noCheck: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			whole := try(t, tt.file, tt.log, true)
			if whole.refused != nil || whole.met != nil {
				t.Fatalf("without damage: %v %v", whole.refused, whole.met)
			}
			var refused, met, harmless int
			for seed := range uint64(damages(t)) {
				file, how := hurt(rand.New(rand.NewPCG(seed, 13)), tt.file)
				got := try(t, file, tt.log, tt.noCheck)
				switch {
				case errors.Is(got.refused, storage.ErrDamaged):
					refused++
				case got.refused != nil:
					t.Errorf("seed %d, %s: refused with %v, which does not say that it is damaged", seed, how, got.refused)
				case got.met != nil && got.told != nil && storage.ClassOf(got.met) == storage.ClassStore:
					met++
				case got.met != nil:
					t.Errorf("seed %d, %s: reading fails with %v, and it is not told (%v)", seed, how, got.met, got.told)
				case got.sum != whole.sum:
					t.Errorf("seed %d, %s: other rows than before, and nothing is said", seed, how)
				default:
					harmless++
				}
			}
			t.Logf("%d refused, %d met when read, %d harmless", refused, met, harmless)
		})
	}
}

// A trial is what became of an attempt to use a database.
type trial struct {
	refused, met, told error
	sum                [32]byte
}

func try(t *testing.T, file, log []byte, noCheck bool) (got trial) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claybot.db")
	err := os.WriteFile(path, file, 0o600)
	if log != nil {
		err = errors.Join(err, os.WriteFile(path+"-wal", log, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), path, Config{Damaged: func(err error) { got.told = err }, noCheck: noCheck})
	if err != nil {
		return trial{refused: err}
	}
	defer func() { _ = db.Close() }() // it may be damaged
	got.sum, got.met = everything(t, db)
	return got
}

// A damaged log of a process that was killed is noticed where commits behind the damage
// are whole. Where none are, it is as after a loss of power.
func TestDamagedLog(t *testing.T) {
	live, log, _ := populated(t)
	whole := try(t, live, log, false)
	last := lastCommit(log)
	told, harmless, torn := 0, 0, 0
	for seed := range uint64(damages(t)) {
		bad, how := hurt(rand.New(rand.NewPCG(seed, 17)), log)
		path := filepath.Join(t.TempDir(), "claybot.db")
		if err := errors.Join(os.WriteFile(path, live, 0o600), os.WriteFile(path+"-wal", bad, 0o600)); err != nil {
			t.Fatal(err)
		}
		lost, err := lostCommits(path)
		if err != nil {
			t.Fatal(err)
		}
		got := try(t, live, bad, false)
		switch {
		case lost > 0 || errors.Is(got.refused, storage.ErrDamaged):
			told++
		case got.refused != nil || got.met != nil:
			t.Errorf("seed %d, %s: %v %v", seed, how, got.refused, got.met)
		case got.sum == whole.sum:
			harmless++
		case strings.HasPrefix(how, "cut"):
			torn++
		default:
			if string(log[:last]) != string(bad[:last]) {
				t.Errorf("seed %d, %s: commits are lost, and nothing is said", seed, how)
			}
			torn++
		}
	}
	t.Logf("%d told, %d harmless, %d as after a loss of power", told, harmless, torn)
}

// lastCommit is where the last commit of a log begins, less the largest block that is
// damaged: nothing that is whole lies behind such damage, as after a loss of power.
func lastCommit(log []byte) int {
	ends := []int{walHeader}
	for at := walHeader; at+walFrame <= len(log) && string(log[at+8:at+16]) == string(log[16:24]); at += walFrame {
		if string(log[at+4:at+8]) != "\x00\x00\x00\x00" {
			ends = append(ends, at+walFrame)
		}
	}
	return max(walHeader, ends[max(0, len(ends)-2)]-pageSize)
}
