package claybot

import (
	"crypto/rand"
	"crypto/sha3"
	"encoding/binary"
	"fmt"
	"math/big"
	"os"
	"sync/atomic"
	"time"
)

type (
	// AgentID names an agent for its whole life. It is a cuid2 and also the
	// name of the agent's directory.
	AgentID string
	// RunID names a run. Run ids sort by the time they were made.
	RunID string
	// MessageID is chosen by the sender from the source's own identity of the
	// message, so that posting the same message twice is harmless.
	MessageID string
)

// idLength is the length of the cuid2 ids claybot makes; 24 to 32 are read.
const idLength = 24

var idCounter atomic.Uint64

// NewID returns a fresh cuid2: 24 characters of a-z and 0-9, the first a
// letter. It hashes time, a counter, the process and 32 random bytes with
// SHA3-512, as the cuid2 specification (paralleldrive/cuid2) asks.
func NewID() AgentID {
	var seed [64]byte
	binary.BigEndian.PutUint64(seed[0:], uint64(time.Now().UnixNano()))
	binary.BigEndian.PutUint64(seed[8:], idCounter.Add(1))
	binary.BigEndian.PutUint64(seed[16:], uint64(os.Getpid()))
	rand.Read(seed[24:]) // never fails since Go 1.24
	sum := sha3.Sum512(seed[:])
	body := new(big.Int).SetBytes(sum[:]).Text(36)
	return AgentID(string('a'+seed[63]%26) + body[1:idLength])
}

// Validate reports an id that is not a cuid2; such an id never becomes a path.
func (id AgentID) Validate() error {
	if len(id) < 24 || len(id) > 32 {
		return fmt.Errorf("agent id %.40q: want 24 to 32 characters", string(id))
	}
	for i, c := range []byte(id) {
		if c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9' {
			continue
		}
		return fmt.Errorf("agent id %.40q: only a-z and 0-9, first a letter", string(id))
	}
	return nil
}

// Time is a moment in unix milliseconds, the form of all times on disk.
type Time int64

// Now is the present moment.
func Now() Time { return At(time.Now()) }

// At converts t, cut to milliseconds. The zero time.Time becomes 0.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Time converts back; 0 becomes the zero time.Time.
func (t Time) Time() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t))
}
