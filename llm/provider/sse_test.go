package provider

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(r io.Reader) (events []string, err error) {
	e := NewEventReader(r)
	defer e.Close()
	for {
		data, err := e.Next()
		if err != nil {
			return events, err
		}
		events = append(events, string(data))
	}
}

func TestEvents(t *testing.T) {
	long := strings.Repeat("y", 100_000)
	for _, tt := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"plain", "data: a\n\ndata: b\n\n", []string{"a", "b"}},
		{"no blank", "data:a\n\ndata:  b\n\n", []string{"a", " b"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}},
		{"mixed ends", "data: a\r\n\ndata: b\r\r\ndata: c\n\r\n", []string{"a", "b", "c"}},
		{"byte order mark", "\xEF\xBB\xBFdata: a\n\n", []string{"a"}},
		{"mark in the middle is not a mark", "data: a\n\n\xEF\xBB\xBFdata: b\n\n", []string{"a"}},
		{"comments", ": hi\n\n:\n:: x\ndata: a\n: b\n\n", []string{"a"}},
		{"several lines", "data: a\ndata: b\ndata:\ndata: c\n\n", []string{"a\nb\n\nc"}},
		{"other fields", "event: x\nid: 1\nretry: 5\ndata: a\ndatax: b\nfoo\n\n", []string{"a"}},
		{"no data", "event: ping\n\ndata\n\ndata:\n\ndata:  \n\ndata: a\n\n", []string{"a"}},
		{"many empty lines", "\n\n\n\ndata: a\n\n\n\n\n", []string{"a"}},
		{"end without empty line", "data: a\n\ndata: b\n", []string{"a", "b"}},
		{"end without end of line", "data: a\n\ndata: b", []string{"a", "b"}},
		{"longer than the buffer", "data: " + long + "\n\ndata: b\n\n", []string{long, "b"}},
		{"keep-alives", strings.Repeat(": keep-alive\n\n", 5000) + "data: a\n\n", []string{"a"}},
	} {
		for name, r := range map[string]io.Reader{
			"whole":    strings.NewReader(tt.in),
			"by bytes": iotest.OneByteReader(strings.NewReader(tt.in)),
			"with EOF": iotest.DataErrReader(strings.NewReader(tt.in)),
		} {
			got, err := readAll(r)
			if !errors.Is(err, io.EOF) || !slices.Equal(got, tt.want) {
				t.Errorf("%s, %s: got %q, %v, want %q", tt.name, name, got, err, tt.want)
			}
		}
	}
}

func TestEventLimits(t *testing.T) {
	fits := "data: " + strings.Repeat("x", MaxLine-6)
	if got, err := readAll(strings.NewReader(fits + "\n\n")); len(got) != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("a line of 1 MiB: %d events, %v", len(got), err)
	}
	for name, in := range map[string]string{
		"line":  fits + "x\n\n",
		"event": strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100) + "\n",
	} {
		if got, err := readAll(strings.NewReader("data: a\n\n" + in)); !errors.Is(err, ErrLineTooLong) || len(got) != 1 {
			t.Errorf("%s beyond 1 MiB: %d events, %v", name, len(got), err)
		}
	}
}

// The events of a stream do not depend on how the network cuts it.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(": hi\n\ndata: {\"choices\":[]}\n\nevent: x\ndata: {\ndata: }\n\ndata: [DONE]\n\n"), 3)
	f.Add([]byte("\xEF\xBB\xBFdata:a\r\n\r\n: c\rdata: b\r\rdata"), 1)
	f.Add([]byte("data: a\ndata: b\n\r\n\r\n"), 2)
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		want, wantErr := readAll(bytes.NewReader(in))
		got, gotErr := readAll(&shortReader{data: in, n: max(1, n%64)})
		if !slices.Equal(got, want) || !errors.Is(gotErr, wantErr) {
			t.Fatalf("whole: %q %v, in pieces of %d: %q %v", want, wantErr, n, got, gotErr)
		}
		for _, e := range got {
			if strings.TrimSpace(e) == "" || len(e) > MaxLine {
				t.Fatalf("event %q", e)
			}
		}
	})
}

type shortReader struct {
	data []byte
	n    int
}

func (s *shortReader) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.n)], s.data)
	s.data = s.data[n:]
	return n, nil
}
