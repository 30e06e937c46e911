package api

import (
	"encoding/json"
	"time"

	"github.com/claybot/claybot/web"
)

// Pure functions: how lists cut texts, how broken JSON is placed, how cells of
// CSV are kept from being formulas.
var (
	Shorten = shorten
	Cell    = cell
	// UpdateFrame is one update as a reader gets it.
	UpdateFrame = updateFrame
)

// PipeBounds are the most bytes that wait for one reader, and how long one
// write may take, of a stream and of a file.
const (
	PipeBound = 2 * pipeLimit
	WriteWait = time.Duration(writeWait)
	PieceWait = time.Duration(pieceWait)
)

// ParseValue reads an answer in JSON.
func ParseValue(s string) (string, error) {
	var v web.Value
	err := json.Unmarshal([]byte(s), &v)
	return string(v), err
}
