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

// snippets returns a reply in which words stand for the code that does not fit into a message, and that
// code as files, for chats that show it so. Code that cannot be stored stays in the text.
func (e *ending) snippets(text string) (string, []claybot.FileReference) {
	chat, ok := e.worker.parts.Connector(e.job.outgoing(claybot.OutgoingAnswer).Route.Connector).(connectors.Snippeter)
	if !ok || !chat.TakesSnippets() {
		return text, nil
	}
	var short strings.Builder
	var files []claybot.FileReference
	at := 0
	for _, code := range connectors.OutlineOf(text).Code {
		if strings.TrimSpace(code.Text) == "" || len(chat.Split(text[code.From:code.To])) == 1 {
			continue
		}
		file := connectors.CodeFile(code, len(files)+1)
		if file, ok = e.keep(file, code.Text); !ok {
			continue
		}
		files = append(files, file)
		short.WriteString(text[at:code.From] + e.job.voice().Say(texts.CodeInFile, file.Name))
		at = code.To
	}
	return short.String() + text[at:], files
}

// keep stores a file of the reply. Its id is made of the content, so an end that is tried again finds it.
func (e *ending) keep(file claybot.FileReference, content string) (claybot.FileReference, bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.job.box.Context()), storeTime)
	defer cancel()
	file.ID = connectors.FileID("reply", string(e.job.run.ID), file.Name, content)
	file, err := e.worker.stores.Files.SaveFile(ctx, e.job.agent.ID, file, strings.NewReader(content), inbox.MaxFile)
	if err != nil {
		e.job.log.Warn("failed to keep a file of a reply; it is sent in parts", "file", file.Name, "err", err)
	}
	return file, err == nil
}

// withFiles returns the messages of a reply, followed by its files.
func withFiles(out []claybot.Outgoing, files []claybot.FileReference) []claybot.Outgoing {
	if len(out) == 0 {
		return out
	}
	o := out[0]
	o.Edit, o.State, o.Resent, o.Copies, o.Tried, o.Due, o.Text = "", "", false, 0, 0, 0, ""
	o.Part, o.Parts = 1, 1
	for _, file := range files {
		o.ID, o.File = runs.NewID(), &file
		out = append(out, o)
	}
	return out
}

// inFile returns the messages of a reply of more than maxReplyParts, which are whole, where the chat takes files: the
// beginning of the text and a file with all of it. ok is false where it takes none, or the file cannot be stored.
func (e *ending) inFile(whole []claybot.Outgoing, text string) (out []claybot.Outgoing, ok bool) {
	chat, ok := e.worker.parts.Connector(whole[0].Route.Connector).(interface {
		connectors.Sender
		connectors.FileSender
	})
	if !ok {
		return nil, false
	}
	file, ok := e.keep(claybot.FileReference{Name: "reply.md", MIMEType: "text/markdown", Kind: claybot.FileDocument}, text)
	if !ok {
		return nil, false
	}
	short := whole[0]
	begin, note := short.Text, " …\n\n"+e.job.voice().In(texts.WholeInFile)
	if n := utf8.RuneCountInString(begin); n > beginningRunes || len(chat.Split(begin+note)) > 1 { // it fills its message
		begin = connectors.Split(begin, min(beginningRunes, n-utf8.RuneCountInString(note)), utf8.RuneCountInString)[0]
	}
	short.Text, short.Part, short.Parts = begin+note, 1, 1
	return withFiles([]claybot.Outgoing{short}, []claybot.FileReference{file}), true
}
