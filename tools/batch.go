package tools

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/lazyregexp"
)

// A Batch is calls that one approval covers: those with the results of one search.
type Batch struct {
	ID    string   // differs for each search; empty: the call is in none
	Hosts []string // of the other calls, each once
	Size  int      // how many other calls there are
}

// foundForm is one result in the text of a search: its number with its title, and its
// address on a line of its own.
var foundForm = lazyregexp.New(`(?m)^\d+\. .*\n {3}(https?://\S+)$`)

// FoundBy returns the batch of an address among the results of the newest search by a tool
// that found exactly this address since the last start or reset. See also Spec.Batch.
func FoundBy(history []claybot.Record, tool, address string) Batch {
	want, ok := pageOf(address)
	if !ok {
		return Batch{}
	}
	for _, r := range slices.Backward(claybot.Restored(history)) {
		if r.Type != claybot.RecordTool || r.Name != tool || !r.OK {
			continue
		}
		b := Batch{ID: string(r.Run) + "/" + r.ToolCallID}
		found := false
		for _, m := range foundForm.FindAllStringSubmatch(r.Text, -1) {
			switch p, ok := pageOf(m[1]); {
			case !ok:
			case p == want:
				found = true
			default:
				b.Size++
				if p.host != want.host && !slices.Contains(b.Hosts, p.host) {
					b.Hosts = append(b.Hosts, p.host)
				}
			}
		}
		if found {
			return b
		}
	}
	return Batch{}
}

// batch asks the hook of a tool; of a hook that panics, the call is in none.
func batch(history []claybot.Record, spec Spec, args json.RawMessage) (b Batch) {
	if spec.Batch == nil {
		return b
	}
	defer func() {
		if recover() != nil {
			b = Batch{}
		}
	}()
	return spec.Batch(history, args)
}

// together reports whether two calls are in one batch.
func together(history []claybot.Record, spec Spec, x, y json.RawMessage) bool {
	b := batch(history, spec, x)
	return b.ID != "" && b.ID == batch(history, spec, y).ID
}

// also says what else an approval of a call covers.
func (b Batch) also(to Say) string {
	switch {
	case b.ID == "" || b.Size == 0:
		return ""
	case len(b.Hosts) == 0:
		return to.say("; an approval also covers the other %d results of this search, on the same host", b.Size)
	}
	return to.say("; an approval also covers the other %d results of this search, on %s", b.Size, strings.Join(b.Hosts, ", "))
}
