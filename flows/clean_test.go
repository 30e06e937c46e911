package flows_test

import (
	"testing"

	"github.com/claybot/claybot/flows"
)

// Only what cannot be a sentence of a stranger is data.
func TestClean(t *testing.T) {
	for form, want := range map[string]bool{
		`^[0-9]{0,8}$`: true, `^(A|B)-[0-9]{4}$`: true, `^ORD-\d{1,10}$`: true, `^[a-z]+@[a-z]+$`: false, `^https://x/[a-z0-9]{1,20}$`: true,
		"": false, `[0-9]{8}`: false, `^[0-9]{8}`: false, `^a|b$`: false, `^[a-z]+\$`: false, `^[^x]{1,9}$`: false, `^[a-z ]{1,9}$`: false,
		`^\w{1,64}$`: true, `^\w{1,65}$`: false, `^\w*$`: false, `^(\w{9}){9}$`: false, `^\S{1,9}$`: false, `(?m)^[0-9]$`: false, `^.{1,9}$`: false, `^\PN{1,9}$`: false, `^(`: false,
	} {
		if got := (flows.Field{Type: flows.FieldText, Form: form}).Clean(); got != want {
			t.Errorf("%s: clean %v", form, got)
		}
	}
	for kind, want := range map[string]bool{flows.FieldNumber: true, flows.FieldDate: true, flows.FieldWord: true, flows.FieldList: false, flows.FieldObject: false} {
		if got := (flows.Field{Type: kind}).Clean(); got != want {
			t.Errorf("%s: clean %v", kind, got)
		}
	}
}
