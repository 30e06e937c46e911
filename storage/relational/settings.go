package relational

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/claybot/claybot"
)

// AgentSettings implements storage.Settings. Settings that are damaged are left
// out: their agent works as its profile says.
func (db index) AgentSettings(ctx context.Context) (map[claybot.AgentID]claybot.Settings, error) {
	all := make(map[claybot.AgentID]claybot.Settings)
	err := db.read(ctx, func(c *Conn) error {
		return c.each("SELECT agent, body FROM settings", func(r Row) error {
			var s claybot.Settings
			if err := unmarshal(r.Str(1), &s); err != nil {
				db.log.Error("the settings of an agent are damaged", "agent", r.Str(0), "err", err)
				return nil
			}
			all[claybot.AgentID(r.Str(0))] = s
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("settings of agents: %w", err)
	}
	return all, nil
}

// SaveAgentSettings implements storage.Settings.
func (db index) SaveAgentSettings(ctx context.Context, id claybot.AgentID, s claybot.Settings) error {
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("settings of agent %s: %w", id, err)
	}
	_, err = write(ctx, db, func(c *Conn) (struct{}, error) {
		err := need(c.first("SELECT 1 FROM agents WHERE id = ?", func(Row) error { return nil }, id))
		if err != nil {
			return struct{}{}, err
		}
		if err := changedBy(c, versionSettings); err != nil {
			return struct{}{}, err
		}
		if string(body) == "{}" {
			err = c.do("DELETE FROM settings WHERE agent = ?", id)
			return struct{}{}, err
		}
		err = c.do("INSERT INTO settings (agent, body) VALUES (?1, ?2) ON CONFLICT (agent) DO UPDATE SET body = ?2", id, body)
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("settings of agent %s: %w", id, err)
	}
	return nil
}
