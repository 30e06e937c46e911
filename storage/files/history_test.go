package files

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/claybot/claybot"
)

// sample returns a history of all kinds of lines and the records in it.
func sample(t testing.TB) ([]byte, []claybot.Record) {
	t.Helper()
	records := []claybot.Record{
		startRecord(1),
		said("one *J* \n é"),
		{Type: claybot.RecordAssistant, At: 2, Run: "r1", Text: "two", ToolCalls: []claybot.ToolCall{{ID: "c", Name: "n", Args: `{"a":1}`}}},
		{Type: claybot.RecordTool, At: 3, Run: "r1", ToolCallID: "c", Name: "n", OK: true, Text: "three"},
		said("four"),
	}
	lines, err := new(encoder).lines(records)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(lines), records
}

// TestHistoryTornAtEveryByte cuts a history everywhere: every whole record
// before the cut survives and so does the next one.
func TestHistoryTornAtEveryByte(t *testing.T) {
	whole, want := sample(t)
	sc, made := newScenario()
	a := agentFor(t, open(t, Config{Dir: "d", Index: sc.index, FS: made}), someone)
	path := "d/agents/" + string(a.ID) + "/history.jsonl"
	for cut := range len(whole) + 1 {
		fsys := made.copy()
		cfg := Config{Dir: "d", Index: sc.index, FS: fsys}
		fsys.write(path, whole[:cut])
		s := open(t, cfg)
		appendTo(t, s, a.ID, said("new"))
		kept := bytes.Count(whole[:cut], []byte("\n"))
		torn := whole[bytes.LastIndexByte(whole[:cut], '\n')+1 : cut]
		if cut < len(whole) && whole[cut] == '\n' {
			kept, torn = kept+1, nil // whole but for the newline
		}
		records := append(append([]claybot.Record{}, want[min(1, kept):kept]...), said("new"))
		s = open(t, cfg)
		if got, err := s.Records(t.Context(), a.ID); err != nil || !reflect.DeepEqual(got, records) {
			t.Fatalf("cut at %d: got %v, %v, want %v", cut, got, err, records)
		}
		if kept := fsys.quarantined(); len(torn) > 0 && !reflect.DeepEqual(kept, []string{string(torn)}) || len(torn) == 0 && len(kept) > 0 {
			t.Errorf("cut at %d: the quarantine has %q, want %q", cut, kept, torn)
		}
		if got := string(fsys.content(path)); !strings.HasPrefix(got, string(whole[:bytes.LastIndexByte(whole[:cut], '\n')+1])) {
			t.Errorf("cut at %d: whole lines were changed", cut)
		}
	}
}

// TestEveryBitFlipIsDetected flips each bit of each line: its record is never
// read as anything, the others are.
func TestEveryBitFlipIsDetected(t *testing.T) {
	whole, want := sample(t)
	for i := range whole {
		for bit := range 8 {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << bit
			tl, err := readTail(bytes.NewReader(bad), int64(len(bad)), marker{})
			if err != nil {
				t.Fatal(err)
			}
			if len(tl.damaged) == 0 && tl.torn.size == 0 && !tl.open && i > bytes.IndexByte(whole, '\n') {
				t.Fatalf("bit %d of byte %d: not detected", bit, i)
			}
			var got []claybot.Record
			if tl.marker.Type != "" {
				got = append(got, tl.marker)
			}
			got = append(got, tl.records...)
			hit := bytes.Count(whole[:i], []byte("\n")) // the line of the flip
			rest := append(append([]claybot.Record{}, want[:hit]...), want[hit+1:]...)
			if whole[i] == '\n' { // joined with the next line, or the last one without newline
				rest = append(append([]claybot.Record{}, want[:hit]...), want[min(hit+2, len(want)):]...)
			}
			if !reflect.DeepEqual(got, rest) {
				t.Fatalf("bit %d of byte %d: got %v, want %v", bit, i, texts(got), texts(rest))
			}
		}
	}
}

func TestInteriorDamageIsSetAsideOnce(t *testing.T) {
	whole, _ := sample(t)
	dir, index := t.TempDir(), &memoryIndex{}
	var told []string
	cfg := Config{Dir: dir, Index: index, OnDamage: func(id claybot.AgentID, text string) { told = append(told, text) }}
	a := agentFor(t, open(t, cfg), someone)
	path := dir + "/agents/" + string(a.ID) + "/history.jsonl"
	bad := bytes.Replace(whole, []byte("three"), []byte("thrae"), 1)
	writeFile(t, path, bad)
	for range 3 {
		s := open(t, cfg)
		appendTo(t, s, a.ID)
		wantTexts(t, "records", records(t, s, a.ID), "one *J* \n é", "two", "four")
	}
	if got, ok := strings.CutPrefix(readFile(t, path), string(bad)); !ok || strings.Count(got, "\n") != 1 || !strings.Contains(got, saidHistory) {
		t.Errorf("behind the file is %q", got)
	}
	if kept := quarantined(t, dir); len(kept) != 1 || !strings.Contains(kept[0], "thrae") || strings.Count(kept[0], "\n") != 1 {
		t.Errorf("quarantine has %q, want the damaged line", kept)
	}
	if want := []string{saidHistory}; !reflect.DeepEqual(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestLossIsRead reads a history with damage while its agent does nothing: who reads it
// learns that it is not whole, and that what is gone may have come from a stranger. Later
// the agent knows both as well, until its next reset.
func TestLossIsRead(t *testing.T) {
	web := claybot.Record{Type: claybot.RecordTool, At: 1, Text: "from a page", ToolCallID: "c", Name: "n", OK: true, Tainted: true}
	for name, damage := range map[string]func(whole string) string{
		"a flipped bit":      func(w string) string { return strings.Replace(w, "from a page", "from a qage", 1) },
		"without its end":    func(w string) string { return w[:strings.Index(w, `{"type":"tool_result"`)] },
		"a lost last line":   func(w string) string { return w[:len(w)-20] + strings.Repeat("\x00", 19) + "\n" },
		"removed altogether": func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, said("one"), web, said("two"))
			whole := readFile(t, h.history)
			writeFile(t, h.history, []byte(damage(whole)))
			if bad := damage(whole); bad == whole {
				t.Fatal("nothing is damaged")
			} else if bad == "" {
				if err := os.Remove(h.history); err != nil {
					t.Fatal(err)
				}
			}
			s := open(t, h.config())
			got, err := s.Records(t.Context(), h.agent.ID)
			if err != nil || len(got) == 0 || !isLoss(got[len(got)-1]) || !got[len(got)-1].Tainted {
				t.Fatalf("got %+v, %v", got, err)
			}
			for range 2 {
				if _, own := h.again(t); len(own) > 0 && !slices.ContainsFunc(own, isLoss) {
					t.Errorf("the agent remembers %q", texts(own))
				}
			}
			if n := strings.Count(readFile(t, h.history), saidHistory); n > 1 {
				t.Errorf("it is noted %d times", n)
			}
		})
	}
}

// TestManyDamagedLines sets a history with thousands of damaged lines aside in a moment:
// neighbours together, and scattered ones with what lies between them.
func TestManyDamagedLines(t *testing.T) {
	for name, lines := range map[string]func(i int, good string) string{
		"a block":   func(int, string) string { return "\xff\x00\n" },
		"scattered": func(_ int, good string) string { return "\xff\x00\n" + good },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, said("one"), said("two"))
			whole := readFile(t, h.history)
			good := whole[strings.LastIndex(strings.TrimSuffix(whole, "\n"), "\n")+1:]
			good = regexp.MustCompile(`,"off":\d+,"crc":"[0-9a-f]+"`).ReplaceAllString(good, "") // as by hand
			var all strings.Builder
			all.WriteString(whole)
			for i := range 20_000 {
				all.WriteString(lines(i, good))
			}
			all.WriteString(good)
			writeFile(t, h.history, []byte(all.String()))
			_, got := h.again(t)
			if len(got) < 4 || !slices.ContainsFunc(got, isLoss) {
				t.Errorf("%d records", len(got))
			}
			if kept := quarantined(t, h.dir); len(kept) != 1 {
				t.Errorf("%d parts are set aside, want 1", len(kept))
			}
			if len(h.told) != 1 {
				t.Errorf("told %q", h.told)
			}
		})
	}
}

// TestLinesByHand accepts lines without a crc, and only those.
func TestLinesByHand(t *testing.T) {
	for line, want := range map[string]bool{
		`{"type":"note","text":"x"}`:                         true,
		` {"text": "x", "type": "note", "later": {"a": 1}} `: true,
		`{"type":"note","crc":"x"}`:                          true,
		`{"type":"note","text":"x","src":"00000000"}`:        false, // all but a crc
		`{"type":"note","text":"x","crc":"00000000"}`:        false,
		`{"text":"x"}`: false,
		`[]`:           false, `null`: false, `"x"`: false, ``: false, `{}`: false,
		`{"type":"note"} {"type":"note"}`: false,
		`{"type":7}`:                      false,
		strings.Repeat("\x00", 100):       false,
	} {
		if _, err := decodeLine([]byte(line)); (err == nil) != want {
			t.Errorf("%s: got error %v, want accepted %v", line, err, want)
		}
	}
	const file = "\n" + `{"type":"note","text":"a"}` + "\n\n \n" + `{"type":"note","text":"b"}` + "\n\n"
	tl, err := readTail(strings.NewReader(file), int64(len(file)), marker{})
	if err != nil || len(tl.damaged) > 0 || tl.torn.size > 0 || tl.end != int64(len(file)) {
		t.Errorf("got %+v, %v, want no damage", tl, err)
	}
	wantTexts(t, "no marker", tl.records, "a", "b")
}

// TestBackwards compares reading from the end with splitting.
func TestBackwards(t *testing.T) {
	for _, sizes := range [][]int{
		{},
		{0},
		{1},
		{chunk - 1},
		{chunk},
		{chunk + 1},
		{10, chunk - 1, chunk, 1, 0, 0, 5 * chunk, 7},
		{chunk / 2, chunk/2 - 1, chunk / 2, chunk/2 - 2, 3},
	} {
		var file []byte
		for i, n := range sizes {
			file = append(append(file, bytes.Repeat([]byte{'a' + byte(i)}, n)...), '\n')
		}
		for _, data := range [][]byte{file, append(bytes.Clone(file), "tail"...)} {
			var got []byte
			end, n := int64(len(data)), 0
			for line, err := range backwards(bytes.NewReader(data), int64(len(data))) {
				if err != nil {
					t.Fatal(err)
				}
				if line.off+int64(len(line.text)) != end || bytes.IndexByte(line.text[:len(line.text)-1], '\n') >= 0 {
					t.Fatalf("sizes %v: line at %d of %d bytes before %d", sizes, line.off, len(line.text), end)
				}
				got, end, n = append(bytes.Clone(line.text), got...), line.off, n+1
			}
			if want := len(bytes.SplitAfter(data, []byte("\n"))); !bytes.Equal(got, data) || n != want && n != want-1 {
				t.Errorf("sizes %v: got %d lines of %d bytes, want %d of %d", sizes, n, len(got), want, len(data))
			}
		}
	}
}

// countingReader counts the bytes read.
type countingReader struct {
	r *bytes.Reader
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}

// TestRestoreReadsTheTailOnly restores 10,000 records behind a reset that has
// as many before it.
func TestRestoreReadsTheTailOnly(t *testing.T) {
	all := []claybot.Record{startRecord(1)}
	for i := range 20_000 {
		if i == 10_000 {
			all = append(all, claybot.Record{Type: claybot.RecordReset, At: 2, By: "user"})
		}
		all = append(all, said(fmt.Sprintf("message %d with a text of an ordinary length, as people write it", i)))
	}
	file, err := new(encoder).lines(all)
	if err != nil {
		t.Fatal(err)
	}
	r := &countingReader{r: bytes.NewReader(file)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tl, err := readTail(r, int64(len(file)), marker{})
	runtime.ReadMemStats(&after)
	if err != nil || !reflect.DeepEqual(tl.records, all[10_002:]) || tl.marker.Type != claybot.RecordReset {
		t.Fatalf("got %d records after %q, %v", len(tl.records), tl.marker.Type, err)
	}
	if limit := int64(len(file))/2 + 2*chunk; r.n > limit {
		t.Errorf("read %d bytes of %d, want at most %d", r.n, len(file), limit)
	}
	took := after.TotalAlloc - before.TotalAlloc
	t.Logf("10,000 records, %d bytes: %d MiB allocated", len(file)/2, took>>20)
	if took > 64<<20 { // it does not grow with the square of the records
		t.Errorf("%d MiB were allocated", took>>20)
	}
}

// TestHotHistoryIsNotReadAgain opens the same history twice and checks that
// the file is only read when it changed behind the cache.
func TestHotHistoryIsNotReadAgain(t *testing.T) {
	fsys := &countingFS{}
	s := open(t, Config{Dir: t.TempDir(), FS: fsys})
	a := agentFor(t, s, someone)
	for i := range 3 {
		fsys.reads = 0
		appendTo(t, s, a.ID, said(fmt.Sprint(i)))
		if fsys.reads != 0 {
			t.Errorf("append %d read the file %d times, want 0", i, fsys.reads)
		}
	}
	path := s.dir(a.ID) + "/history.jsonl"
	writeFile(t, path, append([]byte(readFile(t, path)), `{"type":"note","text":"by hand"}`...))
	h := openHistory(t, s, a.ID, 1)
	wantTexts(t, "after an edit", h.Records(), "0", "1", "2", "by hand")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	appendTo(t, s, a.ID, said("3"))
	wantTexts(t, "records", records(t, s, a.ID), "0", "1", "2", "by hand", "3")
}

type countingFS struct {
	hastyFS
	reads int
}

type countingFile struct {
	File
	fs *countingFS
}

func (c *countingFS) Open(name string, flag int) (File, error) {
	f, err := c.hastyFS.Open(name, flag)
	return countingFile{f, c}, err
}

func (c countingFile) ReadAt(p []byte, off int64) (int, error) {
	c.fs.reads++
	return c.File.ReadAt(p, off)
}

// BenchmarkHotAppend is what one reply costs besides the disk.
func BenchmarkHotAppend(b *testing.B) {
	s := open(b, Config{Dir: b.TempDir(), FS: hastyFS{}})
	a := agentFor(b, s, someone)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		agentFor(b, s, someone)
		r := []claybot.Record{said("hello, how are you?"), {Type: claybot.RecordAssistant, At: 2, Run: "r1", Text: "fine"}}
		if i%20 == 0 {
			r[0] = claybot.Record{Type: claybot.RecordReset, At: 1}
		}
		appendTo(b, s, a.ID, r...)
	}
}

// lines are records as an older version wrote them: without offsets.
func (e *encoder) lines(records []claybot.Record) ([]byte, error) { return e.linesAt(records, -1) }
