package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/people"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// MaxFetch is the maximum size of a file from a chat, in bytes.
const MaxFetch = 20 << 20

// The timeouts and retries of fetching and transcribing files.
const (
	fetchTries = 4
	fetchTime  = 2 * time.Minute  // for one attempt
	fetchPause = 30 * time.Second // maximum wait that a platform may request
	hearTime   = 5 * time.Minute  // for one recording
)

// attachments are the files that a run receives and creates.
type attachments struct {
	job        *job
	store      storage.Files
	talk       *conversation
	connector  func(name string) connectors.Connector
	transcribe Transcriber
	panicked   func(where string)
	quota      *people.Quota
	// tell sends a sentence to the reader of the run, once for each key.
	tell func(ctx context.Context, key, text string) error
}

// bring fetches the files of the run's messages before these become records. If the run
// is about to end, it fetches nothing.
func (a *attachments) bring(ctx context.Context, ends bool) error {
	if ends {
		stopped, cancel := context.WithCancelCause(ctx)
		cancel(errInterrupted)
		ctx = stopped
	}
	return a.fetchAll(ctx, a.job.messages)
}

// fetchAll replaces the sources of files by the fetched files, and recordings
// by their transcripts. A file that cannot be fetched becomes a line of the
// text. The error is that of ctx or of the store.
func (a *attachments) fetchAll(ctx context.Context, ms []claybot.AgentMessage) error {
	for i, m := range ms {
		if !slices.ContainsFunc(m.Files, func(f claybot.FileReference) bool { return f.Source != "" || spoken(f) }) {
			continue
		}
		if at := slices.IndexFunc(a.talk.history.Records(), func(r claybot.Record) bool { return m.ID != "" && r.MessageID == m.ID }); at >= 0 {
			r := a.talk.history.Records()[at] // by an earlier pass
			ms[i].Text, ms[i].Files = r.Text, r.Files
			continue
		}
		var err error
		if ms[i].Text, ms[i].Files, err = a.withFiles(ctx, m); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// withFiles returns the text and the files of one message after fetching.
func (a *attachments) withFiles(ctx context.Context, m claybot.AgentMessage) (string, []claybot.FileReference, error) {
	lines, kept := []string{m.Text}, []claybot.FileReference{}
	var over []string     // names of files beyond the quota
	var room *people.Room // what the owner may still send, when it is known
	for i, f := range m.Files {
		if i >= inbox.MaxFiles {
			lines = append(lines, fmt.Sprintf("[%d more files: at most %d of one message are read]", len(m.Files)-i, inbox.MaxFiles))
			break
		}
		f, why, err := a.fetchOne(ctx, f, &room)
		if errors.Is(err, storage.ErrQuota) {
			over, why, err = append(over, connectors.FileLine(f)), texts.FilesFull(room.Limit), nil
		}
		if err != nil {
			return "", nil, err
		}
		if why != "" {
			lines = append(lines, "["+connectors.FileLine(f)+": "+why+"]")
			continue
		}
		kept = append(kept, f)
		if m.Spoken && m.Text != "" { // heard already, see Listen
			lines = []string{"[" + connectors.FileLine(f) + "] " + m.Text}
		} else if spoken(f) {
			text, why := a.hear(ctx, f)
			if what := connectors.FileLine(f); why != "" {
				lines = append(lines, "["+what+": "+why+"]")
			} else {
				lines = append(lines, "["+what+"] "+text)
			}
		}
	}
	if len(over) > 0 {
		a.leftOut(ctx, m, over, room.Limit)
	}
	lines = slices.DeleteFunc(lines, func(s string) bool { return s == "" })
	return strings.Join(lines, "\n"), kept, nil
}

// leftOut tells the person which files of a message exceed the quota. The model reads it in
// the message in any case.
func (a *attachments) leftOut(ctx context.Context, m claybot.AgentMessage, files []string, limit int64) {
	a.job.log.Warn("files left out: the quota of their owner is used up", "message", m.ID, "files", len(files), "limit", limit)
	if err := a.tell(ctx, "files/"+string(m.ID), texts.Of(ctx).FilesLeftOut(files, limit)); err != nil {
		a.job.log.Warn("failed to notify the user of files left out", "message", m.ID, "err", err)
	}
}

// fetchOne fetches one file unless it is stored already. why is the reason if it
// cannot be fetched; err is storage.ErrQuota, or an error of the store. It sets room
// if that is nil and needed.
func (a *attachments) fetchOne(ctx context.Context, f claybot.FileReference, room **people.Room) (_ claybot.FileReference, why string, err error) {
	if f.Source == "" {
		return f, "", nil
	}
	kept, r, err := a.store.OpenFile(ctx, a.job.agent.ID, f.ID)
	if err == nil {
		return kept, "", r.Close()
	}
	fetcher, ok := a.connector(a.job.agent.Descriptor.Connector).(connectors.Fetcher)
	switch {
	case ctx.Err() != nil:
		return f, "the run was stopped before it was fetched", nil
	case !errors.Is(err, storage.ErrNotFound):
		return f, "", err
	case f.Size > MaxFetch:
		return f, texts.FileTooLarge(MaxFetch), nil
	case !ok:
		return f, "it cannot be fetched, as the chat is not connected now", nil
	}
	if *room == nil {
		r, err := a.quota.Room(ctx, a.job.agent.Descriptor)
		if err != nil {
			return f, "", err
		}
		*room = &r
	}
	if err := (*room).Exceeded(max(f.Size, 1)); err != nil {
		return f, "", err
	}
	for try := 1; ; try++ {
		got, err := a.try(ctx, fetcher, f, *room)
		if err == nil {
			return got, "", nil
		}
		wait := time.Second << (try - 1)
		var retry *connectors.RetryError
		if errors.As(err, &retry) {
			wait = max(wait, retry.After)
		}
		var refused *connectors.RefusedError
		switch {
		case ctx.Err() != nil:
			return f, "the run was stopped before it was fetched", nil
		case errors.As(err, &refused):
			a.job.log.Warn("file refused", "file", f.ID, "err", err)
			return f, refused.Text, nil
		case errors.Is(err, storage.ErrQuota):
			return f, "", err
		case errors.Is(err, storage.ErrTooMany):
			return f, texts.FileTooLarge(MaxFetch), nil
		case storage.Unavailable(err):
			return f, "", err
		case try == fetchTries || wait > fetchPause:
			a.job.log.Warn("failed to fetch file", "file", f.ID, "tries", try, "err", err)
			return f, "it could not be fetched now; please send it again later", nil
		}
		claybot.Sleep(ctx, wait)
	}
}

// try makes one attempt to fetch a file into room.
func (a *attachments) try(ctx context.Context, from connectors.Fetcher, f claybot.FileReference, room *people.Room) (claybot.FileReference, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	body, err := from.Fetch(ctx, f)
	if err != nil {
		return f, err
	}
	defer body.Close() // it was only read
	content := bufio.NewReader(body)
	head, _ := content.Peek(512) // saving the file returns the same error
	f.MIMEType, f.Sent = TypeOf(f.MIMEType, head), true
	return room.Save(content, MaxFetch, func(content io.Reader, limit int64) (claybot.FileReference, error) {
		return a.store.SaveFile(ctx, a.job.agent.ID, f, content, limit)
	})
}

// TypeOf returns the type of a file that begins with head: the type detected
// from the bytes or, if there is none, said.
func TypeOf(said string, head []byte) string {
	found, _, _ := strings.Cut(http.DetectContentType(head), ";")
	major, _, _ := strings.Cut(found, "/")
	switch {
	case said == "" || said == "application/octet-stream":
		return found
	case major == "image" || found == "text/html" || found == "application/pdf":
		return found
	case strings.HasPrefix(said, "image/") && said != "image/svg+xml" && !strings.HasPrefix(said, "image/hei") && said != "image/avif" && said != "image/tiff":
		return found // these image types are recognizable by their bytes
	}
	return said
}

// spoken reports whether a file is a recording to transcribe.
func spoken(f claybot.FileReference) bool {
	return f.Kind == claybot.FileVoice || f.Kind == claybot.FileAudio || f.Kind == "" && strings.HasPrefix(f.MIMEType, "audio/")
}

// hear returns the transcript of a recording, or why there is none.
func (a *attachments) hear(ctx context.Context, f claybot.FileReference) (text, why string) {
	if a.transcribe == nil {
		return "", "it cannot be heard here, as no speech recognition is set up; the operator can do that with the key transcription"
	}
	ctx, cancel := context.WithTimeout(ctx, hearTime)
	defer cancel()
	speech, err := a.recognize(ctx, f)
	if a.talk != nil && speech.Usage != (claybot.Usage{}) {
		a.talk.charge(speech.Model, "a recording was transcribed", speech.Usage)
	}
	text = strings.TrimSpace(claybot.Clean(speech.Text))
	limit, limited := errors.AsType[*llm.LimitError](err)
	switch {
	case limited:
		return "", "it was not heard. " + limit.Text
	case err != nil:
		a.job.log.Warn("failed to transcribe recording", "file", f.ID, "err", err)
		return "", "the speech recognition failed, so its content is unknown"
	case text == "":
		return "", "no words in it"
	}
	if r := []rune(text); len(r) > inbox.MaxText {
		text = string(r[:inbox.MaxText]) + "…"
	}
	return text, ""
}

// Listen returns a spoken message with its transcript as its text. ok is false if there is
// none; err is an error of the store. The budgets of the run pay for it.
func (s *Worker) Listen(ctx context.Context, agent claybot.Agent, run claybot.Run, m claybot.AgentMessage) (heard claybot.AgentMessage, ok bool, err error) {
	if len(m.Files) != 1 || s.transcribe == nil {
		return m, false, nil
	}
	a := &attachments{
		job:   &job{agent: agent, run: run, log: s.runLog(agent, run.ID)},
		store: s.stores.Files, connector: s.parts.Connector, transcribe: s.transcribe, panicked: s.meter.Panicked, quota: s.parts.Quota,
	}
	var room *people.Room
	f, why, err := a.fetchOne(ctx, m.Files[0], &room)
	if errors.Is(err, storage.ErrQuota) {
		why, err = texts.FilesFull(room.Limit), nil
	}
	if err != nil || why != "" {
		return m, false, err
	}
	text, why := a.hear(ctx, f)
	if ctx.Err() != nil {
		return m, false, context.Cause(ctx)
	}
	m.Text, m.Files = text, []claybot.FileReference{f}
	return m, why == "", nil
}

// recognize transcribes a recording and converts a panic to an error.
func (a *attachments) recognize(ctx context.Context, f claybot.FileReference) (_ llm.Speech, err error) {
	defer func() {
		if x := recover(); x != nil {
			a.panicked("transcribe")
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return a.transcribe(ctx, a.job.run, f, func() (io.ReadCloser, error) { return a.OpenFile(ctx, f) })
}

// OpenFile implements runs.Files.
func (a *attachments) OpenFile(ctx context.Context, f claybot.FileReference) (io.ReadCloser, error) {
	_, r, err := a.store.OpenFile(ctx, a.job.agent.ID, f.ID)
	return r, err
}

// SaveFile implements runs.Files.
func (a *attachments) SaveFile(ctx context.Context, name, mimeType string, content []byte) (claybot.FileReference, error) {
	f := claybot.FileReference{Name: name, MIMEType: mimeType}
	return a.store.SaveFile(ctx, a.job.agent.ID, f, bytes.NewReader(content), inbox.MaxFile)
}

// SaveResult implements runs.Files.
func (a *attachments) SaveResult(ctx context.Context, call, text string) (string, error) {
	return a.store.SaveResult(ctx, a.job.agent.ID, string(a.job.run.ID)+"-"+call, text)
}
