package heartbeat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claybot/claybot/connectors/schedule"
)

// maxText is the maximum size of a message of several tasks, in bytes.
const maxText = 100_000

// An item is a due task with the verdict of its gate.
type item struct {
	task *task
	schedule.Verdict
}

// body returns the text of one task for the agent.
func (x item) body() string {
	text := x.task.prompt
	if x.Note != "" {
		text += "\n\n" + x.Note
	}
	if x.Output != "" {
		text += "\n\nThe gate command said:\n" + x.Output
	}
	return text
}

// compose returns the text of a message and its items: as many as fit into
// maxText, at least one.
func compose(items []item) ([]item, string) {
	slices.SortFunc(items, func(a, b item) int { return byTitle(a.task, b.task) })
	if len(items) == 1 {
		return items, items[0].body()
	}
	var entries []string
	size := 0
	for i, x := range items {
		entry := fmt.Sprintf("%d. %s (%s)\n\n%s", i+1, x.task.title, x.task.id, x.body())
		if size += len(entry); size > maxText && i > 0 {
			return compose(items[:i])
		}
		entries = append(entries, entry)
	}
	return items, count(len(items), "task") + " are due.\n\n" + strings.Join(entries, "\n\n")
}

// count formats a count.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
