package docker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// frame is one frame of a stream.
func frame(stream byte, text string) []byte {
	b := make([]byte, headerLen, headerLen+len(text))
	b[0] = stream
	binary.BigEndian.PutUint32(b[4:], uint32(len(text)))
	return append(b, text...)
}

func TestFrames(t *testing.T) {
	t.Parallel()
	whole := bytes.Join([][]byte{frame(1, "out ä"), frame(2, "err"), frame(1, ""), frame(3, "sys"), frame(0, "in"), frame(1, "end")}, nil)
	for _, tt := range []struct {
		name     string
		in       []byte
		out, err string
	}{
		{"nothing", nil, "", ""},
		{"streams", whole, "out äend", "errsysin"},
		{"no frames", []byte("raw terminal output"), "raw terminal output", ""},
		{"less than a header", []byte("raw"), "raw", ""},
		{"frames and then none", append(frame(1, "a"), "plain text"...), "aplain text", ""},
		{"a bad header", append(frame(1, "a"), 1, 0, 1, 0, 0, 0, 0, 1, 'x'), "a\x01\x00\x01\x00\x00\x00\x00\x01x", ""},
		{"ends in a frame", frame(1, "whole")[:10], "wh", ""},
		{"a length that is a lie", append([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}, "ab"...), "ab", ""},
	} {
		for name, wrap := range map[string]func(io.Reader) io.Reader{"": func(r io.Reader) io.Reader { return r }, ", byte by byte": iotest.OneByteReader, ", with its end": iotest.DataErrReader} {
			var out, errs bytes.Buffer
			if err := frames(wrap(bytes.NewReader(tt.in)), &out, &errs); err != nil || out.String() != tt.out || errs.String() != tt.err {
				t.Errorf("%s%s: got %q, %q, %v", tt.name, name, out.String(), errs.String(), err)
			}
		}
	}
	for cut := range whole { // in two pieces, and ended there
		var out, errs bytes.Buffer
		r := io.MultiReader(bytes.NewReader(whole[:cut]), bytes.NewReader(whole[cut:]))
		if err := frames(r, &out, &errs); err != nil || out.String() != "out äend" || errs.String() != "errsysin" {
			t.Errorf("cut at %d: %q, %q, %v", cut, out.String(), errs.String(), err)
		}
		broken := io.MultiReader(bytes.NewReader(whole[:cut]), iotest.ErrReader(errBroken))
		if err := frames(broken, io.Discard, io.Discard); !errors.Is(err, errBroken) {
			t.Errorf("broken at %d: %v", cut, err)
		}
	}
	// An output without a reader does not stop it, and an empty end writes nothing.
	r, w := io.Pipe()
	_ = r.Close()
	if err := frames(bytes.NewReader(whole), w, w); err != nil {
		t.Errorf("an output that is closed: %v", err)
	}
	if err := frames(bytes.NewReader(nil), unwanted{t}, unwanted{t}); err != nil {
		t.Error(err)
	}
}

var errBroken = errors.New("broken")

// unwanted must not be written to.
type unwanted struct{ t *testing.T }

func (u unwanted) Write(p []byte) (int, error) {
	u.t.Errorf("%q was written", p)
	return len(p), nil
}

// FuzzFrames reads whatever, the same in pieces as at once, and never more than
// there was.
func FuzzFrames(f *testing.F) {
	f.Add(append(frame(1, "a"), frame(2, "b")...), 3)
	f.Add([]byte("plain"), 1)
	f.Add([]byte{1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1}, 2)
	f.Fuzz(func(t *testing.T, in []byte, cut int) {
		var out, errs, out2, errs2 bytes.Buffer
		if err := frames(bytes.NewReader(in), &out, &errs); err != nil {
			t.Fatal(err)
		}
		cut = min(max(cut, 0), len(in))
		if err := frames(io.MultiReader(bytes.NewReader(in[:cut]), iotest.OneByteReader(bytes.NewReader(in[cut:]))), &out2, &errs2); err != nil {
			t.Fatal(err)
		}
		if out.String() != out2.String() || errs.String() != errs2.String() || out.Len()+errs.Len() > len(in) {
			t.Errorf("%q, %q; in pieces %q, %q", out.String(), errs.String(), out2.String(), errs2.String())
		}
	})
}
