package texts

import (
	"strings"
	"testing"
	"time"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/runs"
)

// Texts write numbers, amounts and sizes as their language does.
func TestNumbers(t *testing.T) {
	fault := func(q claybot.Question, answer string) error {
		_, err := q.Check(answer, nil)
		return err
	}
	least := 1234.5
	since := claybot.At(time.Now())
	for name, tt := range map[string]struct {
		say             func(v Voice) string
		english, german string
	}{
		"usage": {
			func(v Voice) string {
				return v.Spent(since, claybot.Usage{LLMCalls: 1234, Input: 1_234_000, Output: 567, CostMicroUSD: 12_500_000})
			}, ": $12.50 for 1,234,567 tokens in 1,234 model calls.", ": 12,50 $ für 1.234.567 Token in 1.234 Modellaufrufen.",
		},
		"cents":          {func(v Voice) string { return v.Dollars(1234) }, "$0.001234", "0,001234 $"},
		"thousands":      {func(v Voice) string { return v.Dollars(1_234_567_890_000) }, "$1,234,567.89", "1.234.567,89 $"},
		"nothing":        {func(v Voice) string { return v.Dollars(0) }, "$0", "0 $"},
		"less":           {func(v Voice) string { return v.Dollars(-500_000) }, "-$0.50", "-0,50 $"},
		"files":          {func(v Voice) string { return v.FilesSent(1_234_567, 50_000_000) }, " 1.2 MB of 50.0 MB.", " 1,2 MB von 50,0 MB."},
		"few bytes":      {func(v Voice) string { return v.FilesSent(12, 0) }, " 12 bytes.", " 12 Byte."},
		"one byte":       {func(v Voice) string { return v.FilesSent(1, 0) }, " 1 byte.", " 1 Byte."},
		"files left out": {func(v Voice) string { return v.FilesLeftOut([]string{"a.bin"}, 2_500_000) }, "take up the 2.5 MB", "2,5 MB"},
		"budget": {func(v Voice) string {
			return v.Budget("your budget for today", false, 2_500_000, 1_500_000_000, time.Time{})
		}, "$2.50 of $1,500.00 is spent. Left: $1,497.50.", "2,50 $ von 1.500,00 $ sind verbraucht. Übrig: 1.497,50 $."},
		"tokens": {func(v Voice) string { return v.BudgetWarning("your budget for today", true, 1500, 2000, true) }, "1,500 of 2,000 tokens are spent", "1.500 von 2.000 Token sind verbraucht"},
		"over": {func(v Voice) string {
			return v.OverBudget(&llm.LimitError{Name: "the budget of ann for 3 Oct 2026", Spent: 900_000, Limit: 1_000_000, Asked: 200_000, Least: 200_000}, 0)
		}, "for 3 October 2026 is too small for the next step: $0.90 of $1.00 is spent", "für den 3. Oktober 2026 reicht nicht für den nächsten Schritt: 0,90 $ von 1,00 $ sind verbraucht"},
		"month": {func(v Voice) string { return v.BudgetName("your budget for March 2026") }, "for March 2026", "für März 2026"},
		"context": {func(v Voice) string {
			return v.Context(runs.ContextSize{Window: 200_000, System: 12_345, Last: 12_500})
		}, "About 12,345 of 200,000 tokens are used (6 %).\n\n- instructions: 12,345\n", "Etwa 12.345 von 200.000 Token sind belegt (6 %).\n\n- Anweisungen: 12.345\n"},
		"characters": {func(v Voice) string { return v.TooLong(123_456, 100_000) }, "has 123,456 characters; I can read up to 100,000", "123.456 Zeichen"},
		"plan":       {func(v Voice) string { return v.PlanReason("it may cost $1,250.00, and the budget is $0.50") }, "$1,250.00, and the budget is $0.50", "1.250,00 $ kosten, und das Budget ist 0,50 $"},
		"a bound": {func(v Voice) string {
			return v.Complaint(fault(claybot.Question{Type: claybot.QuestionNumber, Min: &least}, "7"))
		}, "at least 1234.5.", "1234,5"},
		"a text's bound": {func(v Voice) string {
			return v.Complaint(fault(claybot.Question{Type: claybot.QuestionText, Min: &least}, "seven"))
		}, "at least 1234.5 characters; that has 5.", "mindestens 1234,5 Zeichen; das hat 5."},
		"a number": {func(v Voice) string {
			return v.Answered(claybot.Question{Type: claybot.QuestionNumber, Text: "How much?"}, claybot.Answer{Value: []byte("12.5")})
		}, "12.5 *(", "12,5 *("},
		"a default": {func(v Voice) string {
			return v.HowToAnswer(claybot.Question{Type: claybot.QuestionNumber, Default: "2.5"}, "web")
		}, "Default: 2.5.", "2,5."},
		"words of a value": {func(v Voice) string { return v.TaskFailed("v1.5, $3", "x") }, "“v1.5, $3”", "„v1.5, $3“"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.say(Voice{}); !strings.Contains(got, tt.english) {
				t.Errorf("English: %s, want %s", got, tt.english)
			}
			if got := tt.say(Voice{Language: German}); !strings.Contains(got, tt.german) {
				t.Errorf("German: %s, want %s", got, tt.german)
			}
		})
	}
}

// A number that a person typed is read as their language writes it. Where it can be read in two ways,
// the complaint names both as the person can type them.
func TestTypedNumbers(t *testing.T) {
	q := claybot.Question{Type: claybot.QuestionNumber}
	for _, tt := range []struct{ typed, english, german string }{
		{"1.234,5", "1234.5", "1234.5"},
		{"1,234.5", "1234.5", "1234.5"},
		{"1.234.567", "1234567", "1234567"},
		{"2,5", "2.5", "2.5"},
		{"2.5", "2.5", "2.5"},
		{"1,234", "That can be read as 1234 or as 1.234. Please write the one that you mean.", "1.234"},
		{"1.234", "1.234", "Das kann als 1234 oder als 1,234 gelesen werden. Bitte schreib die Zahl, die du meinst."},
		{"-10.500", "-10.5", "Das kann als -10500 oder als -10,5 gelesen werden. Bitte schreib die Zahl, die du meinst."},
		{"viel", "Please give a number, such as 3 or 2.5.", "Bitte gib eine Zahl an, etwa 3 oder 2,5."},
	} {
		for language, want := range map[Language]string{"": tt.english, German: tt.german} {
			v := Voice{Language: language}
			got, err := q.Check(v.Typed(q, tt.typed), nil)
			said := string(got)
			if err != nil {
				said = v.Complaint(err)
			}
			if said != want {
				t.Errorf("%s in %q: %s, want %s", tt.typed, v.Language, said, want)
			}
		}
	}
	if got := (Voice{Language: German}).Typed(claybot.Question{Type: claybot.QuestionText}, "1.234,5"); got != "1.234,5" {
		t.Errorf("a text became %s", got)
	}
}
