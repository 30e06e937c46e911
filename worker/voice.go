package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

// speakTime bounds how long the end of a run waits for the recording of its reply, and speakPause is
// how long replies are text alone after a recording could not be had.
const (
	speakTime  = 10 * time.Second
	speakPause = 5 * time.Minute
)

// A voice has texts spoken, and none for a while after that failed. Its methods are safe for
// concurrent use.
type voice struct {
	speak Speaker
	log   *slog.Logger

	mu     sync.Mutex
	failed bool      // the last text could not be spoken
	until  time.Time // no text is spoken before
}

// errSpeechPaused means that this text or an earlier one could not be spoken, which is logged.
var errSpeechPaused = errors.New("speech is paused")

// free reports whether a text may be spoken now. After a pause, one text is tried before others.
func (v *voice) free() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.failed {
		return true
	}
	now := time.Now()
	if now.Before(v.until) {
		return false
	}
	v.until = now.Add(speakTime)
	return true
}

// settle takes note of how a text ended, and logs once that speech fails, and that it works again.
// The error it returns for a failure of the server is an errSpeechPaused.
func (v *voice) settle(ctx context.Context, err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case err == nil && v.failed:
		v.log.Info("speech works again")
	case err != nil && !serverFailed(ctx, err):
		return err
	case err != nil:
		if v.until = time.Now().Add(speakPause); !v.failed {
			v.log.Warn("speech paused: replies are text alone", "for", speakPause, "err", err)
		}
		err = errSpeechPaused
	}
	v.failed = err != nil
	return err
}

// serverFailed reports whether the next text would fail as well: not what a budget or a setting
// refused, what the server refused of this text, and what ended with its run.
func serverFailed(ctx context.Context, err error) bool {
	if _, limit := errors.AsType[*llm.LimitError](err); limit || errors.Is(ctx.Err(), context.Canceled) {
		return false
	}
	e, ok := errors.AsType[*llm.Error](err)
	return !ok || e.Class != llm.Off && (e.Class != llm.Permanent || e.Account)
}

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
	switch {
	case errors.Is(err, errSpeechPaused):
		return nil
	case err != nil:
		e.job.log.Warn("reply not spoken", "err", err)
		return nil
	}
	file.Kind = claybot.FileVoice
	o.ID, o.File, o.Part, o.Parts, o.At, o.Once = delivery.SpokenPrefix+string(e.job.run.ID), &file, 1, 1, claybot.Now(), true
	return []claybot.Outgoing{o}
}

// speaks reports whether a reply of the run on a route is to be spoken.
func (e *ending) speaks(r claybot.Route) bool {
	if e.worker.voice.speak == nil || e.talk.history == nil {
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

// say has a text spoken unless that failed a while ago, and converts a panic to an error.
func (e *ending) say(ctx context.Context, text string) (_ llm.Recording, err error) {
	v := &e.worker.voice
	if !v.free() {
		return llm.Recording{}, errSpeechPaused
	}
	defer func() {
		if x := recover(); x != nil {
			e.worker.meter.Panicked("speak")
			err = fmt.Errorf("panic: %v", x)
		}
		err = v.settle(ctx, err)
	}()
	return v.speak(ctx, e.job.run, text)
}
