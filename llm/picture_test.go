package llm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// painted is a picture whose left half is red and whose right half is blue.
func painted(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{R: 255, A: 255}
			if x >= w/2 {
				c = color.RGBA{B: 255, A: 255}
			}
			m.SetRGBA(x, y, c)
		}
	}
	return m
}

func asPNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asGIF(t testing.TB, m image.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gif.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestPicture(t *testing.T) {
	small := painted(40, 30)
	for _, tt := range []struct {
		name string
		data []byte
		kind string
		w, h int
		same bool
	}{
		{"small PNG", asPNG(t, small), "image/png", 40, 30, true},
		{"small JPEG", asJPEG(t, small), "image/jpeg", 40, 30, true},
		{"GIF", asGIF(t, small), "image/png", 40, 30, false},
		{"wide PNG", asPNG(t, painted(3000, 100)), "image/png", 1568, 52, false},
		{"high JPEG", asJPEG(t, painted(100, 3136)), "image/jpeg", 50, 1568, false},
		{"a line", asPNG(t, painted(5000, 1)), "image/png", 1568, 1, false},
	} {
		got, err := Picture(tt.data)
		if err != nil || got.MIMEType != tt.kind || bytes.Equal(got.Data, tt.data) != tt.same {
			t.Errorf("%s: got %s, %d bytes, %v", tt.name, got.MIMEType, len(got.Data), err)
			continue
		}
		m, _, err := image.Decode(bytes.NewReader(got.Data))
		if err != nil || m.Bounds().Dx() != tt.w || m.Bounds().Dy() != tt.h {
			t.Errorf("%s: %v, %v, want %d by %d", tt.name, m.Bounds(), err, tt.w, tt.h)
			continue
		}
		left, _, leftBlue, _ := m.At(tt.w/4, tt.h/2).RGBA()
		right, _, rightBlue, _ := m.At(tt.w*3/4, tt.h/2).RGBA()
		if left < 0xE000 || leftBlue > 0x2000 || right > 0x2000 || rightBlue < 0xE000 {
			t.Errorf("%s: the halves are %x/%x and %x/%x", tt.name, left, leftBlue, right, rightBlue)
		}
	}
}

// header is a PNG that says how large it is and has nothing else.
func header(w, h uint32, depth, kind byte) []byte {
	ihdr := binary.BigEndian.AppendUint32([]byte("IHDR"), w)
	ihdr = append(binary.BigEndian.AppendUint32(ihdr, h), depth, kind, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), ihdr...)
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(ihdr))
}

// What is too large or broken is refused in bounded memory, with a sentence.
func TestBombs(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	good := asJPEG(t, painted(40, 30))
	scan := bytes.Index(good, []byte{0xFF, 0xDA})
	scans := bytes.Clone(good[:len(good)-2])
	for range maxScans {
		scans = append(scans, good[scan:len(good)-2]...)
	}
	deep := asPNG(t, painted(40, 30))
	for name, data := range map[string][]byte{
		"nothing":               nil,
		"text":                  []byte("hello"),
		"SVG":                   []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`),
		"BMP":                   append([]byte("BM"), make([]byte, 100)...),
		"too many bytes":        append(bytes.Clone(good), make([]byte, MaxPicture)...),
		"too many pixels":       header(10_000, 5_001, 8, 2),
		"very many pixels":      header(1<<31-1, 1<<31-1, 8, 2),
		"deep colours":          header(6000, 6000, 16, 6),
		"more than it can hold": header(7000, 7000, 8, 2),
		"no pixels":             header(0, 10, 8, 2),
		"header only":           header(10, 10, 8, 2),
		"cut PNG":               deep[:len(deep)/2],
		"cut JPEG":              good[:len(good)/2],
		"many scans":            scans,
		"GIF with no frames":    []byte("GIF89a\x10\x00\x10\x00\x00\x00\x00;"),
		"cut WebP":              []byte("RIFF\x20\x00\x00\x00WEBPVP8L\x10\x00\x00\x00\x2f\xff\xff\xff\x0f"),
	} {
		if got, err := Picture(data); !errors.Is(err, ErrNoPicture) || len(got.Data) > 0 {
			t.Errorf("%s: got %s of %d bytes, %v", name, got.MIMEType, len(got.Data), err)
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d bytes were allocated", used)
	}
}

// Noise that stays too large as PNG becomes a JPEG.
func TestLargeNoise(t *testing.T) {
	m := image.NewRGBA(image.Rect(0, 0, 1200, 1200))
	state := uint32(1)
	for i := range m.Pix {
		state = state*1664525 + 1013904223
		m.Pix[i] = byte(state>>24) | 0xFF*byte(i%4/3)
	}
	data := asPNG(t, m)
	if len(data) <= maxShown || len(data) > MaxPicture {
		t.Fatalf("the PNG has %d bytes", len(data))
	}
	got, err := Picture(data)
	if err != nil || got.MIMEType != "image/jpeg" || len(got.Data) > maxShown {
		t.Errorf("got %s of %d bytes, %v", got.MIMEType, len(got.Data), err)
	}
}

// A photo that is scaled down stands as it was held.
func TestOrientation(t *testing.T) {
	plain := asJPEG(t, painted(1600, 800))
	for how, want := range map[uint16]struct {
		w, h   int
		redTop bool // else left or right
		redEnd bool
	}{
		1: {1568, 784, false, false},
		3: {1568, 784, false, true},
		6: {784, 1568, true, false},
		8: {784, 1568, true, true},
	} {
		exif := append([]byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01"), 0, byte(how), 0, 0)
		segment := append(binary.BigEndian.AppendUint16([]byte{0xFF, 0xE1}, uint16(len(exif)+2)), exif...)
		got, err := Picture(slices.Concat(plain[:2], segment, plain[2:]))
		if err != nil {
			t.Fatal(err)
		}
		m, err := jpeg.Decode(bytes.NewReader(got.Data))
		if err != nil || m.Bounds().Dx() != want.w || m.Bounds().Dy() != want.h {
			t.Errorf("%d: %v, %v", how, m.Bounds(), err)
			continue
		}
		at := image.Pt(want.w/4, want.h/2)
		if want.redTop {
			at = image.Pt(want.w/2, want.h/4)
		}
		if red, _, _, _ := m.At(at.X, at.Y).RGBA(); (red > 0x8000) == want.redEnd {
			t.Errorf("%d: the first half has red %x", how, red)
		}
	}
}

func FuzzPicture(f *testing.F) {
	f.Add(asPNG(f, painted(3, 2)))
	f.Add(asJPEG(f, painted(3, 2)))
	f.Add(asGIF(f, painted(3, 2)))
	f.Add([]byte("RIFF\x20\x00\x00\x00WEBPVP8L\x10\x00\x00\x00\x2f\x00\x00\x00\x0f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Picture(data)
		if (err == nil) != (len(got.Data) > 0) || err != nil && !errors.Is(err, ErrNoPicture) {
			t.Fatalf("%d bytes, %v", len(got.Data), err)
		}
		_ = exifOrientation(data)
	})
}

func photo(n int) claybot.FileReference {
	return claybot.FileReference{Name: fmt.Sprintf("p%d.png", n), MIMEType: "image/png", Size: 100, Path: fmt.Sprintf("files/%d", n), SHA256: fmt.Sprint(n)}
}

// Which messages keep their pictures changes seldom, so that providers can keep
// the beginning.
func TestAlbum(t *testing.T) {
	opened := map[string]int{}
	a := NewAlbum(func(f claybot.FileReference) ([]byte, error) {
		opened[f.Path]++
		switch f.Name {
		case "gone.png":
			return nil, errors.New("not there")
		case "fake.png":
			return []byte("no picture"), nil
		}
		return asPNG(t, painted(4, 4)), nil
	})
	user := func(text string, files ...claybot.FileReference) claybot.Record {
		return claybot.Record{Type: claybot.RecordUser, Text: text, Files: files}
	}
	history := []claybot.Record{user("no picture", claybot.FileReference{Name: "a.txt", MIMEType: "text/plain", Text: "x"})}
	if got := a.Show(Messages(history), 0); len(got) != 1 || got[0].Images != nil {
		t.Errorf("got %+v", got)
	}
	shown := func() (list string) {
		for _, m := range a.Show(Messages(history), 0) {
			if (len(m.Images) > 0) != strings.Contains(m.Content, fileSeen) {
				t.Errorf("message %q has %d pictures", m.Content, len(m.Images))
			}
			for _, i := range m.Images {
				list += " " + i.Name
			}
		}
		return list
	}
	changes := 0
	last := ""
	for n := range 60 {
		history = append(history, user("look", photo(n)), claybot.Record{Type: claybot.RecordAssistant, Text: "nice"})
		got := shown()
		if !strings.HasPrefix(got, last) {
			changes++
		}
		if count := len(strings.Fields(got)); count > ShownMessages || count < min(n+1, ShownMessages-shownStep) || !strings.HasSuffix(got, fmt.Sprintf(" p%d.png", n)) {
			t.Errorf("after %d: %s", n, got)
		}
		last = got
	}
	if changes != 4 {
		t.Errorf("the beginning changed %d times", changes)
	}
	for path, n := range opened {
		if n != 1 {
			t.Errorf("%s was opened %d times", path, n)
		}
	}
	gone, fake, large := photo(100), photo(101), photo(102)
	gone.Name, fake.Name, large.Size = "gone.png", "fake.png", MaxPicture+1
	history = []claybot.Record{
		user("several", gone, fake, large, photo(1)),
		{Type: claybot.RecordAssistant, ToolCalls: []claybot.ToolCall{{ID: "c", Name: "screen", Args: "{}"}}},
		{Type: claybot.RecordTool, ToolCallID: "c", Text: "seen", Files: []claybot.FileReference{photo(2)}},
	}
	before := Messages(history)
	got := a.Show(before, 0)
	if len(got[0].Images) != 1 || strings.Count(got[0].Content, fileUnseen) != 3 || len(got[2].Images) != 1 || got[2].Images[0].Name != "p2.png" {
		t.Errorf("got %+v", got)
	}
	if before[0].Images != nil || strings.Contains(before[0].Content, fileSeen) {
		t.Error("the messages given were changed")
	}
	a.Show(before, 0)
	if opened[fake.Path] != 1 || opened[gone.Path] != 2 || opened[large.Path] != 0 {
		t.Errorf("opened %v", opened)
	}
	if text := Without(got, true, func(Document) bool { return false })[0].Content; !strings.Contains(text, `[the picture name="p1.png", image/png, `) {
		t.Errorf("without pictures: %s", text)
	}
}

// An album forgets what was not used for the longest time.
func TestAlbumIsBounded(t *testing.T) {
	a := NewAlbum(nil)
	for n := range 100 {
		a.keep(fmt.Sprint(n), shown{image: Image{Data: make([]byte, 1<<20)}})
		if _, ok := a.find("0"); !ok {
			t.Fatalf("what is used was forgotten after %d", n)
		}
	}
	if a.size > maxKept || a.used.Len() != len(a.kept) || len(a.kept) < 20 {
		t.Errorf("%d pictures of %d bytes are kept", len(a.kept), a.size)
	}
	if _, ok := a.find("1"); ok {
		t.Error("what was not used is kept")
	}
}

func BenchmarkPicture(b *testing.B) {
	data := asJPEG(b, painted(8000, 6000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Picture(data); err != nil {
			b.Fatal(err)
		}
	}
}
