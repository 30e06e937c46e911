package runs

import (
	"crypto/rand"

	"github.com/lucsky/cuid"

	"github.com/claybot/claybot"
)

// NewID makes the id of a run or of an outgoing message. Such ids sort by time.
func NewID() string {
	id, err := cuid.NewCrypto(rand.Reader)
	if err != nil { // only a broken random source, which ends the program elsewhere
		return string(claybot.NewID())
	}
	return id
}
