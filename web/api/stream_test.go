package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/llmtest"
)

// checkOrder checks that events are those after a seq, without a gap, and that
// each is what the document says.
func (r *rig) checkOrder(all []told, after int64) {
	r.Helper()
	for _, e := range all {
		if err := r.doc.fits(r.T, json.RawMessage(`{"$ref":"#/components/schemas/WireEvent"}`), []byte(e.data)); err != nil {
			r.Errorf("an event that is not described: %.200v\n%s", err, e.data)
		}
		var wire struct {
			V      int
			RunID  string
			Seq    int64
			Type   string
			TS     int64
			Source string
		}
		r.read(e.data, &wire)
		if e.event == "TokenDelta" {
			if e.id != "" || wire.Seq != 0 || wire.RunID == "" {
				r.Errorf("growing text has a seq: %+v", e)
			}
			continue
		}
		after++
		if e.id != strconv.FormatInt(after, 10) || wire.Seq != after || wire.Type != e.event || wire.V != 1 || wire.TS == 0 || wire.Source != "outbox" {
			r.Errorf("event %+v, want seq %d", e, after)
		}
	}
}

func stored(all []told) (kept []told) {
	for _, e := range all {
		if e.event != "TokenDelta" {
			kept = append(kept, e)
		}
	}
	return kept
}

func TestStreamTellsAllFromTheFirst(t *testing.T) {
	r := start(t)
	r.mind.plan("use a tool", llmtest.Use(claybot.ToolCall{ID: "c1", Name: "wait", Args: `{"seconds":0.01}`}), llmtest.Say("done"))
	a := r.say("use a tool")
	all := r.stream(a.Stream)
	r.checkOrder(all, 0)
	types := make(map[string]int)
	for _, e := range all {
		types[e.event]++
	}
	for _, want := range []string{"RunStarted", "AssistantMessage", "ToolCalled", "ToolSucceeded", "RunFinished"} {
		if types[want] == 0 {
			t.Errorf("no %s in %v", want, types)
		}
	}
	if all[len(all)-1].event != "RunFinished" || types["RunFinished"] != 1 {
		t.Errorf("the last event is %+v", all[len(all)-1])
	}
	kept := stored(all)
	if got := r.run(a.Run).LastSeq; got != int64(len(kept)) {
		t.Errorf("lastSeq %d of %d events", got, len(kept))
	}
	// From each place, by either name; the larger one counts.
	for n := range len(kept) {
		for _, head := range [][]string{nil, {"Last-Event-ID", strconv.Itoa(n)}, {"Last-Event-ID", strconv.Itoa(max(0, n-1))}} {
			path := a.Stream
			if head == nil || head[1] != strconv.Itoa(n) {
				path += "?fromSeq=" + strconv.Itoa(n)
			}
			rest := r.stream(path, head...)
			if fmt.Sprint(rest) != fmt.Sprint(kept[n:]) {
				t.Errorf("%s %v gives %v, want %v", path, head, rest, kept[n:])
			}
		}
	}
}

// A reader of statuses sees those of nodes and calls alone, and the last event; it resumes as any other.
func TestStreamOfNodeStatuses(t *testing.T) {
	r := start(t)
	r.mind.plan("use a tool", llmtest.Use(claybot.ToolCall{ID: "c1", Name: "wait", Args: `{"seconds":0.01}`}), llmtest.Say("done"))
	a := r.say("use a tool")
	last := stored(r.stream(a.Stream))
	read := func(path string, head ...string) (lines []string, ids []string) {
		for _, e := range r.stream(path, head...) {
			var wire struct {
				Data struct {
					Node   string `json:"node_id"`
					Call   string `json:"call_id"`
					Status string
				}
			}
			r.read(e.data, &wire)
			if err := r.doc.fits(r.T, json.RawMessage(`{"$ref":"#/components/schemas/WireEvent"}`), []byte(e.data)); err != nil {
				t.Errorf("an event that is not described: %.200v\n%s", err, e.data)
			}
			line := e.event
			if e.event == "node_status" {
				line = strings.TrimSpace(wire.Data.Node + " " + wire.Data.Call)
				line += " " + wire.Data.Status
			}
			lines, ids = append(lines, line), append(ids, e.id)
		}
		return lines, ids
	}
	all, ids := read(a.Stream + "?format=node_status")
	want := []string{"model running", "model success", "tools running", "wait c1 running", "wait c1 success", "tools success", "model running", "model success", "RunFinished"}
	if fmt.Sprint(all) != fmt.Sprint(want) || ids[len(ids)-1] != last[len(last)-1].id {
		t.Fatalf("%q with ids %q", all, ids)
	}
	for i, id := range ids[:len(ids)-1] {
		if rest, _ := read(a.Stream+"?format=node_status", "Last-Event-ID", id); fmt.Sprint(rest) != fmt.Sprint(want[i+1:]) {
			t.Errorf("behind %s: %q", id, rest)
		}
	}
	if g := r.do("GET", a.Stream+"?format=node_status", "", "Last-Event-ID", ids[len(ids)-1]); g.code != http.StatusNoContent {
		t.Errorf("coming back after the end = %d", g.code)
	}
	r.refused("GET", a.Stream+"?format=nodes", "", 400, "bad_request", "format")
}

func TestStreamHeadAndEnds(t *testing.T) {
	r := start(t)
	a := r.say("hello")
	all := stored(r.stream(a.Stream))
	last := strconv.Itoa(len(all))
	resp := r.open("GET", a.Stream, "")
	defer resp.Body.Close()
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if !resp.Close {
		t.Error("the connection is to be kept")
	}
	begin := make([]byte, len("retry: 1000\n: ping\n\n"))
	if _, err := io.ReadFull(resp.Body, begin); err != nil || !strings.HasPrefix(string(begin), "retry: 1000\n: ping\n") {
		t.Errorf("the stream begins with %q, %v", begin, err)
	}
	for _, path := range []string{a.Stream + "?fromSeq=" + last, a.Stream + "?fromSeq=99999"} {
		if rest := r.stream(path); len(rest) != 0 {
			t.Errorf("%s gives %v", path, rest)
		}
	}
	// A browser would come back for ever.
	if g := r.do("GET", a.Stream, "", "Last-Event-ID", last); g.code != http.StatusNoContent || g.body != "" {
		t.Errorf("coming back after the end = %d %q", g.code, g.body)
	}
	if g := r.do("HEAD", a.Stream, ""); g.code != http.StatusOK || g.body != "" {
		t.Errorf("HEAD = %d %q", g.code, g.body)
	}
	for _, bad := range []string{"x", "-1", "1.5", "99999999999999999999", "0x1"} {
		r.refused("GET", a.Stream+"?fromSeq="+bad, "", 400, "bad_request", "fromSeq must be a number from 0")
		r.refused("GET", a.Stream, "", 400, "bad_request", "Last-Event-ID must be a number from 0", "Last-Event-ID", bad)
	}
	r.refused("GET", a.Stream+"?from=1", "", 400, "bad_request", "Known parameters: format, fromSeq")
	r.refused("GET", "/agents/runs/nothing/stream", "", 404, "not_found", "No run")
	r.refused("GET", "/agents/runs/..%2F"+a.Run+"/stream", "", 404, "not_found", "No run")
}

// Text that is being written is shown as it grows: all of it to a reader that comes
// in the middle, and nothing twice.
func TestStreamShowsGrowingText(t *testing.T) {
	r := start(t)
	text := strings.Repeat("growing text ", 20)
	r.mind.plan("grow", llmtest.Say(text))
	letGo := r.mind.hold("grow", true)
	a := r.say("grow")
	for range 2 { // the second reader comes in the middle
		resp := r.open("GET", a.Stream, "")
		defer resp.Body.Close()
		for e := range events(resp.Body) {
			if e.event != "TokenDelta" {
				continue
			}
			var d struct {
				Data struct {
					Step, Offset int
					Text         string
				}
			}
			r.read(e.data, &d)
			if d.Data.Offset != 0 || d.Data.Text != text[:len(text)/2] || d.Data.Step != 1 {
				t.Errorf("the text so far is %+v", d)
			}
			break
		}
	}
	resp := r.open("GET", a.Stream, "")
	defer resp.Body.Close()
	grown, whole := "", ""
	for e := range events(resp.Body) {
		var d struct {
			Data struct {
				Offset int
				Text   string
			}
		}
		r.read(e.data, &d)
		switch e.event {
		case "TokenDelta":
			if d.Data.Offset != len(grown) {
				t.Errorf("text at %d after %d bytes", d.Data.Offset, len(grown))
			}
			grown += d.Data.Text
			letGo()
		case "AssistantMessage":
			whole = d.Data.Text
		}
	}
	if whole != text || !strings.HasPrefix(text, grown) || grown == "" {
		t.Errorf("grown %q, whole %q", grown, whole)
	}
}

// A reader that asks for more than there is waits.
func TestStreamWaitsForWhatComes(t *testing.T) {
	r := start(t)
	letGo := r.mind.hold("slow", false)
	a := r.say("slow")
	resp := r.open("GET", a.Stream+"?fromSeq=2", "") // RunStarted, NodeStarted
	defer resp.Body.Close()
	letGo()
	var all []told
	for e := range events(resp.Body) {
		all = append(all, e)
	}
	r.checkOrder(all, 2)
	if len(all) == 0 || all[len(all)-1].event != "RunFinished" {
		t.Errorf("told %+v", all)
	}
}

// Readers that are cut, and a daemon that ends, lose nothing and repeat
// nothing.
func TestStreamGoesOnAfterARestart(t *testing.T) {
	r := start(t)
	var steps []llmtest.Reply
	for i := range 6 {
		steps = append(steps, llmtest.Use(claybot.ToolCall{ID: fmt.Sprint("c", i), Name: "wait", Args: fmt.Sprintf(`{"seconds":0.00%d}`, i+1)}))
	}
	r.mind.plan("many", append(steps, llmtest.Say("done"))...)
	letGo := r.mind.hold("many", false)
	a := r.say("many")
	resp := r.open("GET", a.Stream, "")
	var all []told
	for e := range events(resp.Body) {
		if e.event != "TokenDelta" {
			all = append(all, e)
			break
		}
	}
	r.restart()
	resp.Body.Close()
	letGo()
	for _, e := range r.stream(a.Stream, "Last-Event-ID", all[len(all)-1].id) {
		if e.event != "TokenDelta" {
			all = append(all, e)
		}
	}
	r.checkOrder(all, 0)
	if all[len(all)-1].event != "RunFinished" || fmt.Sprint(all) != fmt.Sprint(stored(r.stream(a.Stream))) {
		t.Errorf("%d events, the last one %+v", len(all), all[len(all)-1])
	}
}

// Many readers of one run, some of which never read and some of which come back
// again and again: gaps 0, repeats 0.
func TestManyReaders(t *testing.T) {
	r := start(t)
	const steps = 30
	var plan []llmtest.Reply
	for i := range steps {
		plan = append(plan, llmtest.Use(claybot.ToolCall{ID: fmt.Sprint("c", i), Name: "wait", Args: fmt.Sprintf(`{"seconds":0.00%d}`, i+1)}))
	}
	r.mind.plan("many", append(plan, llmtest.Say("done"))...)
	letGo := r.mind.hold("many", false)
	a := r.say("many")
	var wg sync.WaitGroup
	for range 10 { // never read
		resp := r.open("GET", a.Stream, "")
		defer resp.Body.Close()
	}
	results := make([][]told, 30)
	for i := range results {
		wg.Go(func() { results[i] = r.reader(a.Stream, i%3 == 0) })
	}
	letGo()
	wg.Wait()
	whole := stored(r.stream(a.Stream))
	r.checkOrder(whole, 0)
	for i, got := range results {
		if fmt.Sprint(got) != fmt.Sprint(whole) {
			t.Errorf("reader %d got %d events of %d", i, len(got), len(whole))
		}
	}
}

// reader reads a whole stream; one that is fickle leaves after each third
// event and comes back.
func (r *rig) reader(path string, fickle bool) (all []told) {
	last := "0"
	for {
		resp := r.open("GET", path, "", "Last-Event-ID", last)
		n := 0
		for e := range events(resp.Body) {
			if e.event == "TokenDelta" {
				continue
			}
			all, last = append(all, e), e.id
			if n++; fickle && n == 3 {
				break
			}
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusNoContent || len(all) > 0 && strings.HasPrefix(all[len(all)-1].event, "RunF") {
			return all
		}
	}
}
