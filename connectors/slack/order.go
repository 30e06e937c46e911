package slack

import (
	"errors"
	"sync"
	"time"
)

// orderHeld is how long the later messages of a lane wait for one that could not be stored: Slack sends it
// again for the last time after six minutes.
const orderHeld = 390 * time.Second

// errBehind refuses a message because an earlier one of its lane is to come again.
var errBehind = errors.New("an earlier message comes first")

// An order keeps the messages of each lane in order where those come again that could not be stored,
// each after a time of its own. A nil order lets everything pass: a socket brings them in order.
type order struct {
	mu     sync.Mutex
	failed map[string]failure // by lane
}

// A failure is the first message of a lane that could not be stored.
type failure struct {
	message string
	at      time.Time
}

// run stores a message with a job unless an earlier one of the lane is to come again.
func (o *order) run(lane, message string, job func() error) error {
	if o == nil {
		return job()
	}
	if o.behind(lane, message) {
		return errBehind
	}
	err := job()
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.failed[lane]
	switch {
	case err == nil && f.message == message:
		delete(o.failed, lane)
	case err != nil && !ok:
		if o.failed == nil {
			o.failed = make(map[string]failure)
		}
		o.failed[lane] = failure{message, time.Now()}
	}
	return err
}

func (o *order) behind(lane, message string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, ok := o.failed[lane]
	return ok && f.message != message
}

// look forgets the messages that do not come again, and reports whether there are some of them, and others
// that are to come again.
func (o *order) look(now time.Time) (lost, waiting bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for lane, f := range o.failed {
		if now.Sub(f.at) >= orderHeld {
			delete(o.failed, lane)
			lost = true
		}
	}
	return lost, len(o.failed) > 0
}
