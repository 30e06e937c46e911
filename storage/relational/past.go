package relational

import (
	"context"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// Past implements storage.Histories. It reads page by page and calls fn between the reads.
func (s *Agents) Past(ctx context.Context, id claybot.AgentID, fn func(claybot.Record) bool) error {
	known := false
	before := int64(1) << 62
	for {
		rows := 0
		var page []claybot.Record
		err := s.read(ctx, func(c *Conn) error {
			rows, page = 0, nil
			from := before
			err := c.ask(Ask{Query: "SELECT 1 FROM agents WHERE id = ?", Args: []any{id}, Row: once(&known, func(Row) error { return nil })},
				Ask{Args: []any{id, from, recordPage}, Query: "SELECT body, crc, n FROM records WHERE agent = ? AND n < ? ORDER BY n DESC LIMIT 0+?", Row: func(r Row) error {
					rows++
					before = r.Int(2)
					var record claybot.Record
					if decode(r.Str(0), r.Int(1), &record) == nil { // what is damaged was reported when it was remembered
						page = append(page, record)
					}
					return nil
				}})
			return need(known, err)
		})
		if err != nil {
			_, err = result(struct{}{}, err, "past of agent %s", id)
			return err
		}
		for _, r := range page {
			if !fn(r) {
				return nil
			}
		}
		if rows < recordPage {
			return nil
		}
	}
}

var _ storage.Histories = (*Agents)(nil)
