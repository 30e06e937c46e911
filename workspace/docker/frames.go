package docker

import (
	"encoding/binary"
	"errors"
	"io"
)

// The streams of a frame. Bytes of another number, or whose header has no zeros
// where it must, are taken as they are: a terminal has no frames.
const (
	streamStdin  = 0
	streamStdout = 1
	streamStderr = 2
	streamSystem = 3 // errors of the engine
)

const headerLen = 8

// frames takes the multiplexed output of a command apart until it ends. Headers
// and contents may be cut anywhere. A stream that ends in the middle of a frame,
// and one without frames, gives what there was. The error is one of reading; that
// of writing ends nothing, as the command must go on.
func frames(r io.Reader, stdout, stderr io.Writer) error {
	buf := make([]byte, 32<<10)
	var header [headerLen]byte
	for {
		n, err := io.ReadFull(r, header[:])
		if n < headerLen || !framed(header) {
			if n > 0 { // a pipe holds up even a write of nothing
				_, _ = stdout.Write(header[:n])
			}
			if err == nil {
				_, err = io.CopyBuffer(only{stdout}, onlyReader{r}, buf)
			}
			return ended(err)
		}
		to := stdout
		if header[0] != streamStdout {
			to = stderr
		}
		left := int64(binary.BigEndian.Uint32(header[4:]))
		if _, err := io.CopyBuffer(only{to}, io.LimitReader(r, left), buf); err != nil {
			return ended(err)
		}
	}
}

// framed reports whether eight bytes are a header.
func framed(h [headerLen]byte) bool {
	return h[0] <= streamSystem && h[1] == 0 && h[2] == 0 && h[3] == 0
}

// ended is nil for the end of a stream, wherever it comes.
func ended(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// only hides all but Write, and never fails: an output that nobody takes any
// more does not stop a command.
type only struct{ w io.Writer }

func (o only) Write(p []byte) (int, error) {
	_, _ = o.w.Write(p)
	return len(p), nil
}

// onlyReader hides all but Read, so that the buffer is used.
type onlyReader struct{ io.Reader }
