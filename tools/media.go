package tools

import (
	"context"
	"io"

	"github.com/claybot/claybot"
)

// Media is what tools may do in the chat where the run answers, beside texts.
// The Env of the call says who asks. Errors are words for the model; nothing was
// sent then.
//
// Each method may be called again with the Env of the same call, as it is after
// a crash, and then has had its effect once.
type Media interface {
	// SendFile keeps a file for the agent and puts it on its way, behind what the
	// run has sent already. It returns when that is durable.
	SendFile(ctx context.Context, env Env, s Sending) (Sent, error)
	// React puts an emoji on the message that the run answers. That it is there
	// already is success.
	React(ctx context.Context, env Env, emoji string) error
}

// A Sending is a file to be sent: a kept one, by its ID, or what Open gives. A
// call that is made again does not open what is kept by then.
type Sending struct {
	ID   string
	Name string
	Open func(ctx context.Context) (io.ReadCloser, error)
	// MIMEType may be empty: the bytes say it then, as far as they can.
	MIMEType string
	Caption  string // Markdown; optional
	// As is how it is to be shown: a document, photo, voice message or video.
	// Empty: a photo when it is a picture, else a document.
	As claybot.FileKind
}

// A Sent is a file that is on its way. Without a Place it is only kept: who asked
// reads it over the API.
type Sent struct {
	File  claybot.FileReference
	Place string // the connector
}
