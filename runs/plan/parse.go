package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Limits of what a model may answer.
const (
	maxReply  = 1 << 20 // bytes
	maxSteps  = 50
	maxWhat   = 200  // characters of what a step does
	maxDiff   = 8000 // characters
	maxPlaces = 64   // where JSON is looked for
	maxCost   = 1e6  // US dollars of one step
)

// The risks of steps.
const (
	riskLow  = "low"
	riskHigh = "high"
)

// errCut: the JSON began and did not end.
var errCut = errors.New("the JSON is cut off")

// object finds the JSON object with a member of this name in what a model wrote:
// alone, in a fence, or between other words. Where it begins is the first brace
// of the text or of a line; an object inside of another one is not looked at, so
// that a cut answer is never taken for a shorter one.
func object(text, member string) (map[string]json.RawMessage, error) {
	if len(text) > maxReply {
		return nil, fmt.Errorf("the answer has %d bytes, the limit is %d", len(text), maxReply)
	}
	var first error
	at := 0
	for range maxPlaces {
		i := brace(text, at)
		if i < 0 {
			break
		}
		var found map[string]json.RawMessage
		dec := json.NewDecoder(strings.NewReader(text[i:]))
		err := dec.Decode(&found)
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errCut
		case err != nil:
			first, at = notNil(first, fmt.Errorf("it is not JSON: %w", err)), i+1
			continue
		}
		found = lowered(found)
		if _, ok := found[member]; ok {
			return found, nil
		}
		first, at = notNil(first, fmt.Errorf("the object has no %q", member)), i+int(dec.InputOffset())
	}
	return nil, notNil(first, errors.New("it has no JSON object"))
}

func notNil(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

// brace is the next place from at where an object may begin; -1 for none.
func brace(text string, at int) int {
	for at < len(text) {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			return -1
		}
		i += at
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		if !strings.Contains(text[:i], "{") || strings.Trim(line, " \t\r`") == "" || strings.HasPrefix(strings.TrimSpace(line), "```") {
			return i
		}
		at = i + 1
	}
	return -1
}

// lowered has the names of an object in small letters.
func lowered(m map[string]json.RawMessage) map[string]json.RawMessage {
	small := make(map[string]json.RawMessage, len(m))
	for k, v := range m {
		k = strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(k))
		small[k] = v
	}
	return small
}

// A sorted is what classify reads from a model.
type sorted struct {
	intent  string
	targets []string
	values  map[string]json.RawMessage
	text    string
}

// parseIntent reads the answer of classify.
func parseIntent(text string) (sorted, error) {
	var out sorted
	m, err := object(text, "intent")
	if err != nil {
		return out, err
	}
	if json.Unmarshal(m["intent"], &out.intent) != nil {
		return out, errors.New(`"intent" is not a name`)
	}
	out.intent = strings.TrimSpace(out.intent)
	if meta, ok := members(m["intentmeta"]); ok {
		for k, v := range lowered(meta) {
			if _, has := m[k]; !has {
				m[k] = v
			}
		}
	}
	for _, name := range []string{"inputvalues", "inputs"} {
		if values, ok := members(m[name]); ok {
			out.values = values
			break
		}
	}
	out.targets = strs(m["targets"])
	_ = json.Unmarshal(m["text"], &out.text) // no text is none
	out.text = clip(out.text, maxDiff)
	return out, nil
}

// members reads an object; ok is false for anything else.
func members(raw json.RawMessage) (m map[string]json.RawMessage, ok bool) {
	err := json.Unmarshal(raw, &m)
	return m, err == nil && m != nil
}

// strs reads a list of words, or one that stands alone. What is none is left
// out.
func strs(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	var all []string
	for _, one := range list {
		if s, ok := word(one); ok && s != "" {
			all = append(all, s)
		}
	}
	return all
}

// word reads a string, or a number as it is written.
func word(raw json.RawMessage) (string, bool) {
	var s string
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 && raw[0] == '"' {
		return strings.TrimSpace(s), true
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil && n != "" {
		return n.String(), true
	}
	return "", false
}

// A draft is a plan as a model wrote it.
type draft struct {
	steps []Step
	diff  string
}

// parsePlan reads the answer of the planner. faults are what cannot be read, by
// name; the rest is there all the same.
func parsePlan(text string) (d draft, faults []string) {
	m, err := object(text, "steps")
	if err != nil {
		return d, []string{"the plan cannot be read: " + err.Error()}
	}
	if s, ok := word(m["diff"]); ok {
		d.diff = clip(s, maxDiff)
	}
	var steps []json.RawMessage
	if json.Unmarshal(m["steps"], &steps) != nil {
		return d, []string{`"steps" is not a list`}
	}
	if len(steps) > maxSteps {
		return d, []string{fmt.Sprintf("the plan has %d steps, at most %d are allowed", len(steps), maxSteps)}
	}
	for i, raw := range steps {
		st, why := parseStep(raw, i)
		d.steps = append(d.steps, st)
		faults = append(faults, why...)
	}
	return d, faults
}

// parseStep reads the step at a place of the list, counted from 0.
func parseStep(raw json.RawMessage, place int) (st Step, faults []string) {
	st.ID, st.Args, st.Risk = fmt.Sprintf("step-%02d", place+1), json.RawMessage("{}"), riskHigh
	m, ok := members(raw)
	if !ok {
		return st, []string{st.ID + ": it is not an object"}
	}
	m = lowered(m)
	if id, ok := word(m["id"]); ok && id != "" {
		st.ID = id
	}
	fault := func(format string, args ...any) {
		faults = append(faults, quoted(st.ID)+": "+fmt.Sprintf(format, args...))
	}
	if st.Tool, ok = word(m["tool"]); !ok || st.Tool == "" {
		fault("it names no tool")
	}
	for _, name := range []string{"what", "description"} {
		if s, ok := word(m[name]); ok && st.What == "" {
			st.What = clip(s, maxWhat)
		}
	}
	if st.Args, ok = arguments(m["args"]); !ok {
		fault("the arguments are not an object")
	}
	st.Risk = riskOf(m["risk"])
	st.DependsOn = strs(m["dependson"])
	cost := m["costestimate"]
	if st.CostMicroUSD, ok = micros(cost); !ok {
		fault("the cost estimate %.40q is not an amount", cost)
	}
	return st, faults
}

// arguments are an object, or a text that is one; none is an empty object.
func arguments(raw json.RawMessage) (json.RawMessage, bool) {
	if absent(raw) {
		return json.RawMessage("{}"), true
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		raw = json.RawMessage(strings.TrimSpace(s))
	}
	if _, ok := members(raw); !ok {
		return json.RawMessage("{}"), false
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return json.RawMessage("{}"), false
	}
	return b.Bytes(), true
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// riskOf reads a risk; one that is neither low nor missing is high.
func riskOf(raw json.RawMessage) string {
	if s, ok := word(raw); absent(raw) || ok && strings.EqualFold(s, riskLow) {
		return riskLow
	}
	return riskHigh
}

// micros reads an amount in US dollars as millionths of one.
func micros(raw json.RawMessage) (int64, bool) {
	if absent(raw) {
		return 0, true
	}
	s, _ := word(raw)
	usd, err := strconv.ParseFloat(strings.TrimPrefix(s, "$"), 64)
	if err != nil || math.IsNaN(usd) || usd < 0 || usd > maxCost {
		return 0, false
	}
	return int64(math.Round(usd * 1e6)), true
}

// clip cuts a text to n characters.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD")
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return s
}
