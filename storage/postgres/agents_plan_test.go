package postgres

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/storage/postgres/postgrestest"
	"github.com/claybot/claybot/storage/relational"
	"github.com/claybot/claybot/storage/storagetest"
)

// An explainer is a store that asks the server how it reads.
type explainer struct {
	line
	plan *strings.Builder
}

func (e explainer) Read(ctx context.Context, fn func(c *relational.Conn) error) error {
	conn, err := acquire(ctx, e.pool)
	if err != nil {
		return err
	}
	defer conn.Release()
	return fn(relational.NewConn(explaining{&session{ctx: ctx, conn: conn.Conn()}, e.plan}, &e.db.dialect, false))
}

type explaining struct {
	*session
	plan *strings.Builder
}

func (x explaining) Each(q string, f func(r relational.Row) error, args []any) error {
	err := x.session.Each("EXPLAIN "+q, func(r relational.Row) error { x.plan.WriteString(r.Str(0) + "\n"); return nil }, args)
	if err != nil {
		return err
	}
	return x.session.Each(q, f, args)
}

// Of many agents, those of an owner or of a channel are read from an index.
func TestAgentsFromIndexes(t *testing.T) {
	address := schemaOf(t, postgrestest.Shared(t).Database(t))
	db := openWith(t, Config{URL: address, NoListen: true})
	execute(t, plainConn(t, address), `INSERT INTO agents (id, key, descriptor, type, owner)
		SELECT 'a' || n, '["user","telegram","C' || n || '","U' || n || '"]', '{"type":"user","connector":"telegram","channelId":"C' || n || '","userId":"U' || n || '"}',
			'user', 'telegram/U' || n FROM generate_series(1, 20000) n;
		ANALYZE agents`)
	want := claybot.User("telegram", "C777", "U777")
	for name, list := range map[string]func(s *relational.Store) ([]storage.IndexEntry, error){
		"agents_owned": func(s *relational.Store) ([]storage.IndexEntry, error) {
			return s.OwnedAgents(t.Context(), "telegram/U777")
		},
		"agents_key_key": func(s *relational.Store) ([]storage.IndexEntry, error) {
			return s.ChannelAgents(t.Context(), "telegram", "C777")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var plan strings.Builder
			got, err := list(relational.New(explainer{line{db, db.pool}, &plan}, &db.dialect, db.log))
			if err != nil || len(got) != 1 || got[0].Descriptor != want {
				t.Errorf("got %+v %v, want %+v", got, err, want)
			}
			if p := plan.String(); !strings.Contains(p, name) || strings.Contains(p, "Seq Scan") {
				t.Errorf("it is read by\n%s", p)
			}
		})
	}
}

// BenchmarkManyAgents reads among 1,000,000 agents.
func BenchmarkManyAgents(b *testing.B) {
	address := schemaOf(b, postgrestest.Shared(b).Database(b))
	db := openWith(b, Config{URL: address, NoListen: true})
	conn := plainConn(b, address)
	for _, q := range []string{
		fmt.Sprintf(`INSERT INTO agents (id, key, descriptor, type, owner, parent, root, created_at, last_user_at, last_user_n)
			SELECT 'a' || i, CASE WHEN sub THEN '["subagent","u' || i || '"]' ELSE '["user","telegram","C' || i || '","U' || i || '"]' END,
				CASE WHEN sub THEN '{"type":"subagent","uid":"u' || i || '","parent":"a1","owner":"telegram/U1"}'
					ELSE '{"type":"user","connector":"telegram","channelId":"C' || i || '","userId":"U' || i || '"}' END,
				CASE WHEN sub THEN 'subagent' ELSE 'user' END, 'telegram/U' || CASE WHEN sub THEN 1 ELSE i END,
				CASE WHEN sub THEN 'a1' END, CASE WHEN sub THEN 'a1' END, i, CASE WHEN sub THEN 0 ELSE i END, CASE WHEN sub THEN 0 ELSE i END
			FROM (SELECT i, i > %d AS sub FROM generate_series(1, %d) i) k`, storagetest.ManyAgents-100, storagetest.ManyAgents),
		fmt.Sprintf(`INSERT INTO runs (id, agent, state, last_seq, started, ended)
			SELECT 'r' || i, 'a' || i, 'SUCCEEDED', 3, i, i + 1 FROM generate_series(1, %d) i`, storagetest.ManyAgents),
		"ANALYZE agents", "ANALYZE runs",
	} {
		if _, err := conn.Exec(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
	storagetest.BenchAgents(b, db)
}
