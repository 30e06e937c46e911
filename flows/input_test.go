package flows_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/flows"
)

const withInput = `owner: slack/U1
input: {order: "/^[0-9]{1,8}$/", total: number, kind: [refund, question], parts: list, by: date}
triggers: {shop: {on: shop}}
start: done
nodes:
  done: {kind: template, value: "{{ trigger.payload.order }}", next: END}
`

// A payload that does not fit the input is refused with its first field that does not; others may be there.
func TestInput(t *testing.T) {
	f, faults := configs.ReadFlow("refund.yaml", []byte(withInput))
	world := small
	world.Events = []string{"shop"}
	if faults = append(faults, flows.Check(&f, world)...); len(faults) > 0 {
		t.Fatal(faults)
	}
	const whole = `{"order":"1001","total":12.5,"kind":"refund","parts":[],"by":"2026-01-31","more":1}`
	for _, tt := range []struct{ from, to, field, text string }{
		{"", "", "", ""},
		{whole, "", "payload", "must be a JSON object with order, total, kind, parts, by"},
		{whole, "null", "payload", "must be a JSON object"},
		{whole, `[{"order":"1001"}]`, "payload", "must be a JSON object"},
		{whole, `{"order":`, "payload", "must be a JSON object"},
		{`"order"`, `"ordr"`, "payload.order", "is missing; want a text that matches the regular expression ^[0-9]{1,8}$"},
		{`"1001"`, `"x1001"`, "payload.order", "does not fit"},
		{`"1001"`, `1001`, "payload.order", "does not fit"},
		{`12.5`, `"12.5"`, "payload.total", "does not fit; want number"},
		{`"refund"`, `"refunds"`, "payload.kind", "does not fit; want one of refund, question"},
		{`[]`, `{}`, "payload.parts", "does not fit; want list"},
		{`2026-01-31`, `2026-02-31`, "payload.by", "does not fit; want a date such as 2026-01-31"},
		{`"2026-01-31"`, `null`, "payload.by", "does not fit"},
	} {
		payload := strings.Replace(whole, tt.from, tt.to, 1)
		wrong := f.Refuses([]byte(payload))
		switch {
		case tt.field == "" && wrong != nil:
			t.Errorf("%s: %v", payload, wrong)
		case tt.field != "" && (wrong == nil || wrong.Field != tt.field || !strings.HasPrefix(wrong.Text, tt.text) || wrong.Flow != "refund"):
			t.Errorf("%s: %+v, want %s: %s", payload, wrong, tt.field, tt.text)
		}
	}
}

// Faults of an input are found, and triggers and nodes that start a flow without what its input names.
func TestFaultsOfInputs(t *testing.T) {
	world := small
	world.Events = []string{"shop"}
	world.Pattern = func(v string) error {
		if strings.Contains(v, "(") {
			return fmt.Errorf("%q is no regular expression", v)
		}
		return nil
	}
	for _, tt := range []struct{ from, to, want string }{
		{"total: number", "total: numbr", "2: input.total: "},
		{"[0-9]{1,8}", "(", "2: input.order: "},
		{"input:", "inputs:", "2: inputs: unknown key; did you mean input?"},
		{"{on: shop}", "{on: slack}", "3: triggers.shop: starts the flow without a payload, and the flow has an input"},
		{"{on: shop}", "{cron: \"0 9 * * *\"}", "3: triggers.shop: starts the flow without a payload"},
	} {
		text := strings.Replace(withInput, tt.from, tt.to, 1)
		f, faults := configs.ReadFlow("refund.yaml", []byte(text))
		if len(faults) == 0 {
			faults = flows.Check(&f, world)
		}
		if len(faults) != 1 || !strings.HasPrefix(faults[0].String(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.to, faults, tt.want)
		}
	}
	read := func(name, text string) *flows.Flow {
		f, faults := configs.ReadFlow(name+".yaml", []byte(text))
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		return &f
	}
	for payload, want := range map[string]int{"": 5, "payload: {order: x, total: 1, kind: refund, by: x},": 1, "payload: \"{{ trigger.payload }}\",": 0} {
		found := flows.CheckInputs(map[string]*flows.Flow{"refund": read("refund", withInput), "shop": read("shop", fmt.Sprintf(`owner: slack/U1
start: a
nodes:
  a: {kind: flow, flow: refund, %s next: b}
  b: {kind: parallel, branches: {x: {kind: flow, flow: refund, %[1]s text: x}, y: {kind: flow, flow: other}}, next: END}
`, payload))})["shop"]
		if len(found) != 2*want || want > 0 && found[0].Line != 4 || want == 1 && found[1].Key != "nodes.b.branches.x.payload.parts" {
			t.Errorf("%s: %v", payload, found)
		}
	}
}
