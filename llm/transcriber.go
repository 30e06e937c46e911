package llm

import (
	"context"

	"github.com/claybot/claybot"
)

// MaxAudio is how many bytes of audio a Transcriber takes.
const MaxAudio = 25 << 20

// A Transcriber turns speech into text. It may be used by any number of
// goroutines. Its errors are *Error; that of a call that ctx ended also wraps the
// cause of ctx.
type Transcriber interface {
	// Transcribe returns what is said in audio. name and mime tell its form; the
	// name itself is not sent anywhere.
	Transcribe(ctx context.Context, name, mime string, audio []byte) (Speech, error)
}

// Speech is what was said.
type Speech struct {
	Text  string // may be empty: nobody spoke
	Model string
	// Usage has the tokens where the provider counts any. Its cost is unknown and
	// counted as Unpriced.
	Usage claybot.Usage
}
