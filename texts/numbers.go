package texts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/llm"
)

// numbers are how a language writes numbers. Say and Count write their values in this way, so a
// text needs no more than %d or %.1f.
type numbers struct {
	group string // between thousands
	point string // before decimals
	money string // an amount of dollars
}

var (
	englishNumbers = numbers{group: ",", point: ".", money: "$%s"}
	germanNumbers  = numbers{group: ".", point: ",", money: "%s $"}
)

// Dollars is llm.Dollars in the language.
func (v Voice) Dollars(micro int64) string { return v.dollars(llm.Dollars(micro)) }

// dollars is an amount in the language, by the one in English. Another text stays as it is.
func (v Voice) dollars(english string) string {
	text, negative := strings.CutPrefix(english, "-")
	text, amount := strings.CutPrefix(text, "$")
	if !amount {
		return english
	}
	text = fmt.Sprintf(v.grammar().numbers.money, v.grouped(text))
	if negative {
		return "-" + text
	}
	return text
}

// Size is connectors.FileSize in the language.
func (v Voice) Size(n int64) string {
	if n < 1000 {
		return v.Count(n, "%d byte|%d bytes")
	}
	number, unit, _ := strings.Cut(connectors.FileSize(n), " ")
	return v.grouped(number) + " " + unit
}

// grouped is a number in the language, by the one in English, with its thousands apart.
func (v Voice) grouped(english string) string {
	of := v.grammar().numbers
	whole, part, decimals := strings.Cut(strings.ReplaceAll(english, englishNumbers.group, ""), englishNumbers.point)
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && n != 0 {
		whole = strings.ReplaceAll(llm.Grouped(n), englishNumbers.group, of.group)
	}
	if decimals {
		whole += of.point + part
	}
	return whole
}

// Typed returns an answer that a person typed as claybot.Question.Check reads it: in a number, the
// marks of the language stand for those of English.
func (v Voice) Typed(q claybot.Question, text string) string {
	of := v.grammar().numbers
	if q.Type != claybot.QuestionNumber {
		return text
	}
	return strings.NewReplacer(of.group, englishNumbers.group, of.point, englishNumbers.point).Replace(text)
}

// decimal is a number in the language as people write it in an answer: without marks between
// thousands, which may be read as decimals there.
func (v Voice) decimal(english string) string {
	return strings.ReplaceAll(english, englishNumbers.point, v.grammar().numbers.point)
}

// written are the values of a text, with its numbers as the language writes them.
func (v Voice) written(args []any) []any {
	all := make([]any, len(args))
	for i, a := range args {
		switch n := a.(type) {
		case int, int64, float64:
			a = number{v, n}
		case interface{ Decimal() string }:
			a = v.decimal(n.Decimal())
		}
		all[i] = a
	}
	return all
}

// A number is the value of a text.
type number struct {
	voice Voice
	value any
}

// Format implements fmt.Formatter.
func (n number) Format(s fmt.State, verb rune) {
	_, _ = s.Write([]byte(n.voice.grouped(fmt.Sprintf(fmt.FormatString(s, verb), n.value)))) // into memory
}
