package main

import (
	"slices"
	"testing"

	"github.com/claybot/claybot/connectors/cron"
	"github.com/claybot/claybot/connectors/heartbeat"
	"github.com/claybot/claybot/tools"
	questions "github.com/claybot/claybot/tools/ask"
	"github.com/claybot/claybot/tools/chat"
	"github.com/claybot/claybot/tools/clock"
	"github.com/claybot/claybot/tools/documents"
	"github.com/claybot/claybot/tools/files"
	"github.com/claybot/claybot/tools/messaging"
	"github.com/claybot/claybot/tools/schedule"
	"github.com/claybot/claybot/tools/send"
	"github.com/claybot/claybot/tools/shell"
	"github.com/claybot/claybot/tools/todos"
)

// Every tool of claybot itself is reserved, also one that this configuration leaves
// out.
func TestReserved(t *testing.T) {
	tasks, heartbeats := cron.New(cron.Config{}), heartbeat.New(heartbeat.Config{})
	all := slices.Concat(
		clock.Tools(), messaging.Tools(nil, nil, nil), schedule.Tools(tasks, heartbeats, nil), schedule.MemoryTools(tasks), questions.Tools(nil),
		shell.Tools(nil, nil), send.Tools(nil, nil), chat.Tools(nil), files.Tools(nil), todos.Tools(nil, nil, nil), documents.Tools(documents.State(nil)),
		[]tools.Tool{messaging.TaskTool(nil, nil)},
	)
	for _, tool := range all {
		if name := tool.Spec().Name; !reserved(name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	if len(all) < 30 || reserved("notes_search") {
		t.Errorf("%d tools", len(all))
	}
}
