package openai

import (
	"encoding/json"
	"reflect"
	"testing"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm/provider"
)

func assemble(t *testing.T, pieces string) []claybot.ToolCall {
	t.Helper()
	var in []sdk.ToolCall
	if err := json.Unmarshal([]byte(pieces), &in); err != nil {
		t.Fatal(err)
	}
	a := assembler{Answer: new(provider.Answer)}
	for _, p := range in {
		if _, err := a.assemble(p); err != nil {
			t.Fatal(err)
		}
	}
	return a.Finish("seed", nil)
}

func TestAssemble(t *testing.T) {
	call := func(id, name, args string) claybot.ToolCall {
		return claybot.ToolCall{ID: id, Name: name, Args: args}
	}
	for _, tt := range []struct {
		name, pieces string
		want         []claybot.ToolCall
	}{
		{"nothing", `[]`, nil},
		{
			"interleaved", `[{"index":0,"id":"a","function":{"name":"x"}},{"index":1,"id":"b","function":{"name":"y","arguments":"{"}},
			{"index":0,"function":{"arguments":"{\"k\""}},{"index":1,"function":{"arguments":"}"}},{"index":0,"function":{"arguments":":1}"}}]`,
			[]claybot.ToolCall{call("a", "x", `{"k":1}`), call("b", "y", `{}`)},
		},
		{
			"id and name in every piece", `[{"index":0,"id":"a","function":{"name":"x","arguments":"{"}},{"index":0,"id":"a","function":{"name":"x","arguments":"}"}}]`,
			[]claybot.ToolCall{call("a", "x", `{}`)},
		},
		{
			"one index for all", `[{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}]`,
			[]claybot.ToolCall{call("a", "x", `{}`), call("b", "y", `{}`)},
		},
		{
			"no index", `[{"id":"a","function":{"name":"x","arguments":"{"}},{"function":{"arguments":"}"}},{"id":"b","function":{"name":"y"}}]`,
			[]claybot.ToolCall{call("a", "x", `{}`), call("b", "y", ``)},
		},
		{
			"no index and no id", `[{"function":{"name":"x","arguments":"{}"}},{"function":{"name":"x","arguments":"{}"}}]`,
			[]claybot.ToolCall{call("", "x", `{}`), call("", "x", `{}`)},
		},
		{
			"late id and parted name", `[{"index":3,"function":{"name":"get_"}},{"index":3,"id":"a"},{"index":3,"function":{"name":"time"}}]`,
			[]claybot.ToolCall{call("a", "get_time", ``)},
		},
		{
			"same ids", `[{"index":0,"id":"a","function":{"name":"x"}},{"index":1,"id":"a","function":{"name":"y"}}]`,
			[]claybot.ToolCall{call("a", "x", ``), call("", "y", ``)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := assemble(t, tt.pieces)
			ids := map[string]bool{}
			for i := range got {
				if got[i].ID == "" || ids[got[i].ID] {
					t.Errorf("call %d has id %q", i, got[i].ID)
				}
				ids[got[i].ID] = true
				if i < len(tt.want) && tt.want[i].ID == "" {
					got[i].ID = "" // derived; being new is all that is asked
				}
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

// The same step gets the same derived ids, so that a repeated one matches.
func TestDerivedIDsAreStable(t *testing.T) {
	pieces := `[{"index":0,"function":{"name":"x"}},{"index":1,"function":{"name":"x"}}]`
	if a, b := assemble(t, pieces), assemble(t, pieces); !reflect.DeepEqual(a, b) {
		t.Errorf("got %v, then %v", a, b)
	}
}

func TestTooManyCalls(t *testing.T) {
	a := assembler{Answer: new(provider.Answer)}
	var err error
	for i := 0; err == nil && i < 2*maxCalls; i++ {
		_, err = a.assemble(sdk.ToolCall{Index: &i})
	}
	if err == nil || len(a.Calls) != maxCalls {
		t.Errorf("%d calls, %v", len(a.Calls), err)
	}
}

func FuzzAssemble(f *testing.F) {
	f.Add([]byte(`[{"index":0,"id":"a","function":{"name":"x","arguments":"{"}},{"index":0,"function":{"arguments":"}"}}]`))
	f.Add([]byte(`[{"index":-1},{"id":"a"},{"id":"a","function":{"name":"n"}},{"function":{"name":"n"}}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var pieces []sdk.ToolCall
		if json.Unmarshal(in, &pieces) != nil {
			t.Skip()
		}
		a := assembler{Answer: new(provider.Answer)}
		want := 0
		for _, p := range pieces {
			if _, err := a.assemble(p); err != nil {
				return
			}
			want += len(p.Function.Arguments)
		}
		ids := map[string]bool{}
		got := 0
		for _, c := range a.Finish("seed", nil) {
			if c.ID == "" || len(c.ID) > 40 || ids[c.ID] {
				t.Fatalf("call id %q", c.ID)
			}
			ids[c.ID] = true
			got += len(c.Args)
		}
		if got != want || (len(pieces) > 0) != (len(ids) > 0) {
			t.Fatalf("%d bytes of arguments in %d calls, want %d", got, len(ids), want)
		}
	})
}
