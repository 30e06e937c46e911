package relational

import (
	"time"

	"github.com/claybot/claybot"
)

// What the tests of a whole store see of the inside.
const (
	PruneChunk   = pruneChunk
	CauseDamaged = causeDamaged
	CodeDamaged  = codeDamaged
)

// A SpentKey is a spentKey of an agent that speaks nowhere.
type SpentKey struct {
	Day                string
	Agent              claybot.AgentID
	Owner, Kind, Model string
}

func (c *Conn) Spend(k SpentKey, u claybot.Usage, runs int64) {
	c.meter.spend(spentKey{day: k.Day, agent: k.Agent, owner: k.Owner, kind: k.Kind, model: k.Model}, u, runs)
}

// SetBack makes the store believe that its clock was set back by d just now.
func (db *Store) SetBack(d time.Duration) { db.looked.Add(d.Milliseconds()) }

func (c *Conn) Change(q string, args ...any) (int64, error) { return c.exec(q, args...) }

func (c *Conn) Rows(q string, f func(r Row) error, args ...any) error { return c.each(q, f, args...) }

func (c *Conn) CancelReserved(agent claybot.AgentID, id claybot.RunID, m claybot.MessageID, reason string) error {
	return cancelReserved(c, agent, id, m, reason)
}

func (c *Conn) PruneRepeats(t claybot.Time) (int, error)        { return pruneRepeats(c, t) }
func (c *Conn) PruneKeys(t claybot.Time, keep int) (int, error) { return pruneKeys(c, t, keep) }

func (c *Conn) PruneUsage(day string) (int, error) { return pruneUsage(c, day) }
