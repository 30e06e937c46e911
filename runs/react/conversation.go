package react

import (
	"errors"
	"slices"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/tools"
)

// errConsumed: the consumer stopped ranging.
var errConsumed = errors.New("the consumer takes no more records")

// A conversation is what the agent remembers, with what the pass adds to it, and how
// far the run is by that. Every record of a pass goes through emit.
type conversation struct {
	run      claybot.RunID
	records  []claybot.Record // without the newest ones; see all
	newest   []claybot.Record
	progress *progress
	tools    *tools.Set
	yield    func(claybot.Record, error) bool
}

// all are the records. A long conversation is copied when there is a next step that reads
// the newest ones, which most runs have not.
func (c *conversation) all() []claybot.Record {
	c.records = append(c.records, c.newest...)
	c.newest = nil
	return c.records
}

// emit hands over a record. When emit returns nil, the record is durable, or the run cannot
// end without it.
func (c *conversation) emit(r claybot.Record) error {
	if r.Type == claybot.RecordSummary { // the records that it stands for may be deleted one day
		r.Tainted, r.Private = r.Tainted || tools.Tainted(c.all()), r.Private || tools.Private(c.all())
		r.Groups = c.tools.Added(c.all())
		_, r.Index = indexes(c.all())
	}
	if !c.yield(r, nil) {
		return errConsumed
	}
	c.add(r)
	return nil
}

// add takes in a record that is durable already.
func (c *conversation) add(r claybot.Record) {
	c.newest = append(c.newest, r)
	c.progress.add(r)
}

// asked reports whether the run has asked a question like this.
func (c *conversation) asked(like func(claybot.Question) bool) bool {
	return slices.ContainsFunc(c.all(), func(r claybot.Record) bool {
		return r.Type == claybot.RecordQuestion && r.Run == c.run && r.Question != nil && like(*r.Question)
	})
}

// question is the question with an id; nil when there is none.
func (c *conversation) question(id string) *claybot.Question {
	for _, r := range slices.Backward(c.all()) {
		if r.Type == claybot.RecordQuestion && r.Question != nil && r.Question.ID == id {
			return r.Question
		}
	}
	return nil
}
