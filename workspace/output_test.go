package workspace

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// whole is the text of one write.
func whole(in []byte) string {
	o := NewOutput(nil)
	_, _ = o.Stream().Write(in)
	o.Close()
	return o.String()
}

func TestOutputText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "a\tb\nc äöü 🙂", "a\tb\nc äöü 🙂"},
		{"NUL", "a\x00b", "ab"},
		{"color", "\x1b[1;31mred\x1b[0m", "red"},
		{"title", "\x1b]0;title\x07after", "after"},
		{"title with another end", "\x1b]0;title\x1b\\after", "after"},
		{"title without an end", "\x1b]0;title", "0;title"},
		{"title cut by a line", "\x1b]0;title\nnext", "0;title\nnext"},
		{"title cut by a color", "\x1b]0;title\x1b[1mnext", "0;titlenext"},
		{"endless title", "\x1b]" + strings.Repeat("x", 5000) + "\x07", strings.Repeat("x", 5000)},
		{"8-bit CSI", "\u009b31mred", "red"},
		{"8-bit OSC", "\u009d0;t\u009cred", "red"},
		{"character set", "\x1b(Bx", "x"},
		{"cut sequence", "a\x1b[31", "a"},
		{"lone escape", "a\x1b", "a"},
		{"lines of Windows", "a\r\nb\r\r\nc", "a\nb\nc"},
		{"progress", "10%\r20%\r", "10%\n20%"},
		{"invalid", "a\xffb\xc3", "a\uFFFDb\uFFFD"},
		{"UTF-8 mark", "\xef\xbb\xbfa", "a"},
		{"UTF-16 little", "\xff\xfea\x00\x34\x04\x3d\xd8\x42\xde\n\x00", "aд🙂\n"},
		{"UTF-16 big", "\xfe\xff\x00a\x04\x34\xd8\x3d\xde\x42", "aд🙂"},
		{"UTF-16 by its look", "d\x00i\x00r\x00 \x00\x34\x04", "dir д"},
		{"UTF-16 with half a character", "\xff\xfea\x00b", "a\uFFFD"},
		{"UTF-16 with half a pair", "\xff\xfe\x3d\xd8a\x00", "\uFFFDa"},
		{"short and odd", "\xff", "\uFFFD"},
		{"names with NUL", "a\x00b\x00c\x00", "abc"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := whole([]byte(tt.in)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			o := NewOutput(nil)
			w := o.Stream()
			for i := range len(tt.in) {
				_, _ = w.Write([]byte{tt.in[i]})
			}
			o.Close()
			if got := o.String(); got != tt.want {
				t.Errorf("byte by byte: got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOutputTail(t *testing.T) {
	for _, unit := range []string{"x", "ä", "🙂", "\x1b[31mx"} {
		var file bytes.Buffer
		o := NewOutput(func() (io.Writer, error) { return &file, nil })
		w := o.Stream()
		raw := strings.Repeat(unit, MaxTail)
		_, _ = io.WriteString(w, raw)
		if o.Cut() {
			t.Errorf("%q: cut at the limit", unit)
		}
		_, _ = io.WriteString(w, unit+"end")
		o.Close()
		text := o.String()
		if got := utf8.RuneCountInString(text); got != MaxTail || !strings.HasSuffix(text, "xend") && unit == "x" || !o.Cut() {
			t.Errorf("%q: %d characters, cut %v, end %q", unit, got, o.Cut(), text[len(text)-5:])
		}
		if begun, err := o.Whole(); !begun || err != nil || file.String() != raw+unit+"end" || o.Bytes() != int64(file.Len()) {
			t.Errorf("%q: the file has %d of %d bytes, %v", unit, file.Len(), o.Bytes(), err)
		}
	}
}

func TestOutputShortHasNoFile(t *testing.T) {
	o := NewOutput(func() (io.Writer, error) { return nil, errors.New("asked for a file") })
	_, _ = io.WriteString(o.Stream(), strings.Repeat("x", MaxTail))
	o.Close()
	if begun, err := o.Whole(); begun || err != nil {
		t.Errorf("begun %v, %v", begun, err)
	}
}

// counter counts, and fails after a while.
type counter struct{ n, limit int64 }

func (c *counter) Write(p []byte) (int, error) {
	if c.limit > 0 && c.n+int64(len(p)) > c.limit {
		return 0, errors.New("no space")
	}
	c.n += int64(len(p))
	return len(p), nil
}

func TestOutputBounds(t *testing.T) {
	block := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
	c := new(counter)
	o := NewOutput(func() (io.Writer, error) { return c, nil })
	w := o.Stream()
	for range MaxWhole/len(block) + 10 {
		_, _ = w.Write(block)
	}
	o.Close()
	if c.n != MaxWhole {
		t.Errorf("the file has %d bytes, want %d", c.n, MaxWhole)
	}
	if held := cap(o.tail) + cap(o.held); held > 1<<20 {
		t.Errorf("%d bytes of memory", held)
	}
	if want := int64(MaxWhole + 10*len(block)); o.Bytes() != want {
		t.Errorf("counted %d, want %d", o.Bytes(), want)
	}
}

func TestOutputFileFails(t *testing.T) {
	o := NewOutput(func() (io.Writer, error) { return &counter{limit: 1 << 20}, nil })
	w := o.Stream()
	for range 100 {
		if n, err := w.Write(make([]byte, 100<<10)); n != 100<<10 || err != nil {
			t.Fatalf("write: %d, %v", n, err)
		}
	}
	if _, err := o.Whole(); err == nil {
		t.Error("the caller is not told that the file is incomplete")
	}
}

// Two streams do not spoil each other's characters.
func TestOutputStreams(t *testing.T) {
	o := NewOutput(nil)
	out, errs := o.Stream(), o.Stream()
	_, _ = io.WriteString(out, "ab\xc3")
	_, _ = io.WriteString(errs, "\x1b[3")
	_, _ = io.WriteString(out, "\xa4-")
	_, _ = io.WriteString(errs, "1merr")
	o.Close()
	o.Close()
	_, _ = io.WriteString(out, "late")
	if got := o.String(); got != "abä-err" {
		t.Errorf("got %q", got)
	}
}

func FuzzOutput(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[31", "\x1b]0;x\x1b\\y", "\xff\xfea\x00", "a\u0085b", "d\x00i\x00r\x00s\x00x", "\r\r\n", "\xef\xbb\xbf\xef\xbb\xbf"} {
		f.Add([]byte(seed), uint64(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, cuts uint64) {
		want := whole(in)
		if !utf8.ValidString(want) || strings.ContainsFunc(want, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }) {
			t.Fatalf("%q became %q", in, want)
		}
		o := NewOutput(nil)
		w := o.Stream()
		for rest := in; len(rest) > 0; {
			cuts = cuts*6364136223846793005 + 1442695040888963407
			n := min(len(rest), int(cuts>>60)+1)
			_, _ = w.Write(rest[:n])
			rest = rest[n:]
		}
		o.Close()
		if got := o.String(); got != want {
			t.Fatalf("%q in parts became %q, want %q", in, got, want)
		}
	})
}
