package overview

import (
	"testing"

	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// A message that started a workflow was handled, and its story names the workflow.
func TestStoryNamesTheWorkflow(t *testing.T) {
	r := storage.Receipt{Skipped: storage.SkippedFlow + "order"}
	if got, want := skippedWords(r.Skipped), "it started the workflow order"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := verdictSkipped(texts.Voice{}, r), (Verdict{OutcomeHandled, "It started the workflow order."}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
