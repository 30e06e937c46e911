package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/delivery"
	"github.com/claybot/claybot/inbox"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/profiles"
	"github.com/claybot/claybot/storage"
)

// speakTime bounds how long the end of a run waits for the recording of its reply.
const speakTime = 30 * time.Second

// spoken returns the voice message of a reply, which goes beside its text; none where the profile,
// the chat or the text has none, and where it cannot be had: then the text alone is the reply. The
// final record is durable before a provider is asked, and the file is named by the text, so a pass after a
// crash finds the recording of the pass before.
func (e *ending) spoken(text string) []claybot.Outgoing {
	o := e.job.outgoing(claybot.OutgoingFile)
	said := connectors.Spoken(text)
	if said == "" || !e.speaks(o.Route) {
		return nil
	}
	if n := utf8.RuneCountInString(said); n > llm.MaxSpoken {
		e.job.log.Info("reply not spoken: it is too long", "characters", n, "most", llm.MaxSpoken)
		return nil
	}
	ctx, cancel := context.WithTimeout(e.job.box.Context(), speakTime)
	defer cancel()
	file, err := e.recording(ctx, said)
	if err != nil {
		e.job.log.Warn("reply not spoken", "err", err)
		return nil
	}
	file.Kind = claybot.FileVoice
	o.ID, o.File, o.Part, o.Parts, o.At, o.Once = delivery.SpokenPrefix+string(e.job.run.ID), &file, 1, 1, claybot.Now(), true
	return []claybot.Outgoing{o}
}

// speaks reports whether a reply of the run on a route is to be spoken.
func (e *ending) speaks(r claybot.Route) bool {
	if e.worker.speak == nil || e.talk.history == nil {
		return false
	}
	if _, ok := e.worker.parts.Connector(r.Connector).(connectors.FileSender); !ok {
		return false
	}
	switch e.job.profile.VoiceReplies {
	case profiles.VoiceAlways:
		return true
	case profiles.VoiceReply:
		m := e.job.newestOf(claybot.MessageUser)
		return m != nil && len(m.Files) == 1 && m.Files[0].Kind == claybot.FileVoice
	}
	return false
}

// recording returns the recording of a text of the run, which an earlier pass may have made.
func (e *ending) recording(ctx context.Context, text string) (claybot.FileReference, error) {
	store, agent := e.worker.stores.Files, e.job.agent.ID
	file := claybot.FileReference{ID: connectors.FileID("spoken", string(e.job.run.ID), text), Name: "reply.ogg", MIMEType: "audio/ogg", Kind: claybot.FileVoice}
	kept, r, err := store.OpenFile(ctx, agent, file.ID)
	switch {
	case err == nil:
		return kept, r.Close()
	case !errors.Is(err, storage.ErrNotFound):
		return file, err
	}
	if err := e.talk.flush(ctx); err != nil {
		return file, err
	}
	made, err := e.say(ctx, text)
	if made.Usage != (claybot.Usage{}) {
		e.talk.charge(made.Model, "the reply was spoken", made.Usage)
	}
	if err != nil {
		return file, err
	}
	return store.SaveFile(ctx, agent, file, bytes.NewReader(made.Audio), inbox.MaxFile)
}

// say has a text spoken and converts a panic to an error.
func (e *ending) say(ctx context.Context, text string) (_ llm.Recording, err error) {
	defer func() {
		if x := recover(); x != nil {
			e.worker.meter.Panicked("speak")
			err = fmt.Errorf("panic: %v", x)
		}
	}()
	return e.worker.speak(ctx, e.job.run, text)
}
