package worker

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/texts"
)

const (
	// maxReplyParts is how many messages one reply fills at most.
	maxReplyParts = 10
	// beginningRunes is how much of a longer reply is shown above its file.
	beginningRunes = 1000
)

// inFile returns the messages of a reply that fills out: out itself, or, where that is more
// than maxReplyParts and the chat takes files, the beginning of the text and a file with all
// of it. If the file cannot be stored, the reply keeps its parts.
func (e *ending) inFile(out []claybot.Outgoing, text string) []claybot.Outgoing {
	if len(out) <= maxReplyParts {
		return out
	}
	if _, ok := e.worker.parts.Connector(out[0].Route.Connector).(connectors.FileSender); !ok {
		return out
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.job.box.Context()), storeTime)
	defer cancel()
	file := claybot.FileReference{ // made of the text, so that an end that is tried again finds it
		ID: connectors.FileID("reply", string(e.job.run.ID), text), Name: "reply.md", MIMEType: "text/markdown", Kind: claybot.FileDocument,
	}
	file, err := e.worker.stores.Files.SaveFile(ctx, e.job.agent.ID, file, strings.NewReader(text), inbox.MaxFile)
	if err != nil {
		e.job.log.Warn("failed to keep a long reply as a file; it is sent in parts", "parts", len(out), "err", err)
		return out
	}
	short, whole := out[0], out[0]
	note := " …\n\n" + e.job.voice().In(texts.WholeInFile)
	room := min(beginningRunes, utf8.RuneCountInString(short.Text)-utf8.RuneCountInString(note)) // the first part fits its chat
	short.Text, short.Part, short.Parts = connectors.Split(short.Text, room, utf8.RuneCountInString)[0]+note, 1, 2
	whole.ID, whole.Edit, whole.State, whole.Resent, whole.Copies = runs.NewID(), "", "", false, 0
	whole.Tried, whole.Due = 0, 0
	whole.Text, whole.File, whole.Part, whole.Parts = "", &file, 2, 2
	return []claybot.Outgoing{short, whole}
}
