package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Test plays a case and returns what is not as expected; none when all is.
func (p Player) Test(ctx context.Context, c Case) (wrong []string, played Played, err error) {
	played, err = p.Play(ctx, c, 0, false)
	if err != nil {
		return []string{err.Error()}, played, nil
	}
	return played.compare(c.Expect), played, nil
}

// Crash plays a case once for each record, cut off behind it, and returns where the run went another
// way than the one that was not cut.
func (p Player) Crash(ctx context.Context, c Case) (wrong []string, cuts int, err error) {
	whole, err := p.Play(ctx, c, 0, false)
	if err != nil {
		return []string{err.Error()}, 0, nil
	}
	for cut := 1; cut <= whole.Records; cut++ {
		got, err := p.Play(ctx, c, cut, false)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("cut off at record %d: %v", cut, err))
			continue
		}
		for _, w := range got.differs(whole) {
			wrong = append(wrong, fmt.Sprintf("cut off at record %d: %s", cut, w))
		}
	}
	return wrong, whole.Records, ctx.Err()
}

// compare returns what is not as expected.
func (p Played) compare(want Expected) (wrong []string) {
	add := func(what string, got, want any) {
		if g, w := jsonOf(got), jsonOf(want); g != w {
			wrong = append(wrong, fmt.Sprintf("%s: %s, want %s", what, g, w))
		}
	}
	code := ""
	if p.Err != nil {
		code = p.Err.Code
	}
	if code != want.Fails {
		text := code
		if p.Err != nil {
			text = p.Err.Error()
		}
		wrong = append(wrong, fmt.Sprintf("fails: %q, want %q", text, want.Fails))
	}
	if want.Path != nil {
		add("path", p.Path, want.Path)
	}
	if want.Replies != nil {
		add("replies", p.Replies, want.Replies)
	}
	for _, tool := range want.Never {
		if p.Called[tool] > 0 {
			wrong = append(wrong, fmt.Sprintf("%s was called", tool))
		}
	}
	for _, node := range slices.Sorted(maps.Keys(want.Outputs)) {
		add("output of "+node, p.Outputs[node], want.Outputs[node])
	}
	for _, node := range slices.Sorted(maps.Keys(want.Calls)) {
		add("arguments of "+node, p.Calls[node], want.Calls[node])
	}
	for _, node := range slices.Sorted(maps.Keys(want.Asks)) {
		add("question of "+node, p.Asks[node], want.Asks[node])
	}
	return wrong
}

// differs returns where p is other than the run that was not cut.
func (p Played) differs(whole Played) (wrong []string) {
	if g, w := strings.Join(p.Path, " "), strings.Join(whole.Path, " "); g != w {
		wrong = append(wrong, fmt.Sprintf("path %s, want %s", g, w))
	}
	if g, w := jsonOf(p.Replies), jsonOf(whole.Replies); g != w {
		wrong = append(wrong, fmt.Sprintf("replies %s, want %s", g, w))
	}
	if g, w := jsonOf(p.Called), jsonOf(whole.Called); g != w {
		wrong = append(wrong, fmt.Sprintf("calls %s, want %s", g, w))
	}
	if g, w := jsonOf(p.Outputs), jsonOf(whole.Outputs); g != w {
		wrong = append(wrong, fmt.Sprintf("outputs %s, want %s", g, w))
	}
	if (p.Err == nil) != (whole.Err == nil) {
		wrong = append(wrong, fmt.Sprintf("ends with %v, want %v", errors.Unwrap(p.Err), errors.Unwrap(whole.Err)))
	}
	return wrong
}

// jsonOf is a value as tests show it. Numbers of a file and of a run are the same.
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
