package relational

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode is the stored form of a message or outgoing and its checksum.
func encode(v any) (body string, crc uint32, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", 0, err
	}
	return string(b), crc32.Checksum(b, castagnoli), nil
}

// decode reads what encode wrote. Damage is an error that wraps
// storage.ErrDamaged.
func decode(body string, crc int64, v any) error {
	b := []byte(body)
	if int64(crc32.Checksum(b, castagnoli)) != crc {
		return fmt.Errorf("%w: checksum of the stored text is wrong", storage.ErrDamaged)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	return nil
}

// decodeMessage reads a message; body and crc are the columns from i on.
func decodeMessage(r Row, i int) (m claybot.AgentMessage, err error) {
	err = decode(r.Str(i), r.Int(i+1), &m)
	return m, err
}

// outgoingColumns are what decodeOutgoing reads, in its order.
const outgoingColumns = "n, id, state, attempts, tried_at, due_at, receipt, cause, body, crc"

// decodeOutgoing reads a row of outgoingColumns. When the body is damaged the
// other fields are right all the same.
func decodeOutgoing(r Row) (o claybot.Outgoing, err error) {
	err = decode(r.Str(8), r.Int(9), &o)
	o.N, o.ID, o.State, o.Attempts = r.Int(0), r.Str(1), claybot.SendState(r.Str(2)), int(r.Int(3))
	o.Tried, o.Due = claybot.Time(r.Int(4)), claybot.Time(r.Int(5))
	o.Receipt, o.Cause = r.Str(6), r.Str(7)
	return o, err
}

// unmarshal reads a JSON column that has no checksum.
func unmarshal(s string, v any) error {
	if err := json.Unmarshal([]byte(s), v); err != nil {
		return fmt.Errorf("%w: %w", storage.ErrDamaged, err)
	}
	return nil
}

// need turns a missing row into storage.ErrNotFound.
func need(found bool, err error) error {
	if err == nil && !found {
		return storage.ErrNotFound
	}
	return err
}

func ignoreNotFound(err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
