package slacktest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of blocks, in characters where it is about text.
const (
	maxMessageBlocks = 50
	maxViewBlocks    = 100
	maxBlocksChars   = 13_200 // of all texts of a message together
	maxSection       = 3_000
	maxHeader        = 150
	maxLabel         = 75
	maxButtonValue   = 2_000
	maxOptionValue   = 150
	maxID            = 255
	maxPlaceholder   = 150
	maxInputLabel    = 2_000
	maxInput         = 3_000
	maxElements      = 25
	maxOptions       = 100
	maxCheckboxes    = 10
	maxContext       = 10

	maxContextActions = 5
	maxViewTitle      = 24
	maxPrivate        = 3_000
	maxViewBytes      = 250_000
	maxPayloadBytes   = 16 << 10 // of an acknowledgement; more is dropped
)

// An object is a JSON object.
type object = map[string]any

// A blockError is the reason why Slack would reject blocks, with its code.
type blockError struct {
	code string
	text string
}

func (e *blockError) Error() string { return e.code + ": " + e.text }

func invalid(format string, args ...any) error {
	return &blockError{"invalid_blocks", fmt.Sprintf(format, args...)}
}

// CheckBlocks returns why Slack would refuse the blocks of a message, nil when it
// takes them. The error begins with Slack's code.
func CheckBlocks(data []byte) error {
	blocks, err := readBlocks(data)
	if err != nil {
		return err
	}
	c := &checker{limit: maxMessageBlocks}
	if err := c.blocks(blocks); err != nil {
		return err
	}
	if c.chars > maxBlocksChars {
		return &blockError{"msg_blocks_too_long", fmt.Sprintf("%d characters", c.chars)}
	}
	return nil
}

// readBlocks reads a list of blocks; null is none.
func readBlocks(data []byte) ([]object, error) {
	var blocks []object
	if err := json.Unmarshal(data, &blocks); err != nil {
		return nil, &blockError{"invalid_blocks_format", err.Error()}
	}
	return blocks, nil
}

// A checker goes through the blocks of one message or view.
type checker struct {
	view   bool
	limit  int
	chars  int // of the texts so far
	inputs int
	tables int
	md     int // characters of Markdown so far
	cells  int // characters in tables so far
}

func (c *checker) blocks(blocks []object) error {
	if len(blocks) > c.limit {
		return invalid("%d blocks", len(blocks))
	}
	seen := make(map[string]bool)
	for i, b := range blocks {
		id, err := optional[string](b, "block_id")
		if err != nil {
			return err
		}
		if chars(id) > maxID || id != "" && seen[id] {
			return invalid("block %d: block_id is too long or there twice: %q", i, id)
		}
		seen[id] = true
		if err := c.block(b); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	return nil
}

func (c *checker) block(b object) error {
	switch b["type"] {
	case "divider":
		return nil
	case "header":
		return c.text(b, "text", maxHeader, true, "plain_text")
	case "section":
		if err := c.text(b, "text", maxSection, true, "plain_text", "mrkdwn"); err != nil {
			return err
		}
		if b["accessory"] == nil {
			return nil
		}
		return c.element(b["accessory"], "button static_select multi_static_select checkboxes datepicker timepicker", map[string]bool{})
	case "markdown":
		return c.markdown(b)
	case "table":
		return c.table(b)
	case "context":
		return c.context(b)
	case "actions":
		return c.actions(b)
	case "context_actions":
		if c.view {
			return invalid("context_actions are for messages")
		}
		return c.contextActions(b)
	case "input":
		return c.input(b)
	}
	return invalid("unsupported type: %v", b["type"])
}

func (c *checker) context(b object) error {
	all, _ := b["elements"].([]any)
	if len(all) == 0 || len(all) > maxContext {
		return invalid("%d elements of a context", len(all))
	}
	for _, e := range all {
		if err := c.text(object{"text": e}, "text", maxSection, true, "plain_text", "mrkdwn"); err != nil {
			return err
		}
	}
	return nil
}

// contextActions checks a block with feedback buttons
// (docs.slack.dev/reference/block-kit/blocks/context-actions-block, read 2026-11-28).
func (c *checker) contextActions(b object) error {
	all, _ := b["elements"].([]any)
	if len(all) == 0 || len(all) > maxContextActions {
		return invalid("%d elements of context actions", len(all))
	}
	for _, x := range all {
		e, _ := x.(object)
		if e["type"] != "feedback_buttons" {
			return invalid("element %v of context actions", e["type"])
		}
		for _, side := range []string{"positive_button", "negative_button"} {
			o, _ := e[side].(object)
			label, _ := o["accessibility_label"].(string)
			if value, _ := o["value"].(string); value == "" || chars(value) > maxButtonValue || chars(label) > maxLabel {
				return invalid("%s: %v", side, e[side])
			}
			if err := c.text(o, "text", maxLabel, true, "plain_text"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *checker) actions(b object) error {
	all, _ := b["elements"].([]any)
	if len(all) == 0 || len(all) > maxElements {
		return invalid("%d elements of actions", len(all))
	}
	seen := make(map[string]bool)
	for _, e := range all {
		if err := c.element(e, "button static_select checkboxes datepicker timepicker datetimepicker", seen); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) input(b object) error {
	c.inputs++
	if err := c.text(b, "label", maxInputLabel, true, "plain_text"); err != nil {
		return err
	}
	if err := c.text(b, "hint", maxInputLabel, false, "plain_text"); err != nil {
		return err
	}
	if _, err := optional[bool](b, "optional"); err != nil {
		return err
	}
	kinds := "static_select multi_static_select checkboxes datepicker timepicker datetimepicker plain_text_input"
	if c.view {
		kinds += " email_text_input number_input"
	}
	return c.element(b["element"], kinds, map[string]bool{})
}

// text checks a text object.
func (c *checker) text(b object, key string, limit int, needed bool, kinds ...string) error {
	if b[key] == nil {
		if needed {
			return invalid("%s is missing", key)
		}
		return nil
	}
	o, ok := b[key].(object)
	text, isText := o["text"].(string)
	kind, _ := o["type"].(string)
	_, emoji := o["emoji"]
	_, verbatim := o["verbatim"]
	switch {
	case !ok || !isText || kind == "" || !strings.Contains(" "+strings.Join(kinds, " ")+" ", " "+kind+" "):
		return invalid("%s must be %v: %v", key, kinds, b[key])
	case text == "" || chars(text) > limit:
		return invalid("%s has %d characters, of 1 to %d", key, chars(text), limit)
	case kind == "mrkdwn" && emoji, kind == "plain_text" && verbatim:
		return invalid("%s: emoji is for plain_text, verbatim for mrkdwn", key)
	}
	c.chars += chars(text)
	return nil
}

// element checks one interactive element.
func (c *checker) element(x any, kinds string, seen map[string]bool) error {
	e, ok := x.(object)
	kind, _ := e["type"].(string)
	if !ok || kind == "" || !strings.Contains(" "+kinds+" ", " "+kind+" ") {
		return invalid("element %v is not among: %s", e["type"], kinds)
	}
	id, err := optional[string](e, "action_id")
	if err != nil {
		return err
	}
	if chars(id) > maxID || id != "" && seen[id] {
		return invalid("action_id is too long or there twice: %q", id)
	}
	seen[id] = true
	if err := c.text(e, "placeholder", maxPlaceholder, false, "plain_text"); err != nil {
		return err
	}
	switch kind {
	case "button":
		return c.button(e)
	case "static_select":
		return c.menu(e, maxOptions, "initial_option")
	case "multi_static_select":
		if n, err := optional[float64](e, "max_selected_items"); err != nil || e["max_selected_items"] != nil && n < 1 {
			return invalid("max_selected_items: %v", e["max_selected_items"])
		}
		return c.menu(e, maxOptions, "initial_options")
	case "checkboxes":
		return c.menu(e, maxCheckboxes, "initial_options")
	case "datepicker":
		return stamp(e, "initial_date", time.DateOnly)
	case "timepicker":
		return stamp(e, "initial_time", "15:04")
	case "datetimepicker":
		if at, err := optional[float64](e, "initial_date_time"); err != nil || e["initial_date_time"] != nil && (at < 1e9 || at >= 1e10) {
			return invalid("initial_date_time: %v", e["initial_date_time"])
		}
		return nil
	}
	return written(e, kind)
}

func (c *checker) button(e object) error {
	if err := c.text(e, "text", maxLabel, true, "plain_text"); err != nil {
		return err
	}
	value, err := optional[string](e, "value")
	if err != nil || chars(value) > maxButtonValue {
		return invalid("value of a button has %d characters", chars(value))
	}
	switch e["style"] {
	case nil, "primary", "danger":
		return nil
	}
	return invalid("style %v", e["style"])
}

// menu checks the options, and that those chosen at first are among them.
func (c *checker) menu(e object, limit int, initial string) error {
	all, _ := e["options"].([]any)
	if len(all) == 0 || len(all) > limit {
		return invalid("%d options, of 1 to %d", len(all), limit)
	}
	known := make(map[string]bool)
	for _, x := range all {
		o, _ := x.(object)
		value, ok := o["value"].(string)
		if !ok || chars(value) > maxOptionValue || known[value] {
			return invalid("value of an option: %v", o["value"])
		}
		known[value] = true
		if err := c.text(o, "text", maxLabel, true, "plain_text"); err != nil {
			return err
		}
		if err := c.text(o, "description", maxLabel, false, "plain_text"); err != nil {
			return err
		}
	}
	var chosen []any
	switch x := e[initial].(type) {
	case nil:
		return nil
	case []any:
		chosen = x
	default:
		chosen = []any{x}
	}
	if len(chosen) == 0 {
		return invalid("%s is empty", initial)
	}
	for _, x := range chosen {
		if o, _ := x.(object); !known[fmt.Sprint(o["value"])] {
			return invalid("%s is not an option: %v", initial, x)
		}
	}
	return nil
}

// stamp checks a date or a time.
func stamp(e object, key, layout string) error {
	text, err := optional[string](e, key)
	if err != nil {
		return err
	}
	if _, err := time.Parse(layout, text); e[key] != nil && err != nil {
		return invalid("%s: %q", key, text)
	}
	return nil
}

// written checks an input that is typed into.
func written(e object, kind string) error {
	initial, err := optional[string](e, "initial_value")
	if err != nil || chars(initial) > maxInput {
		return invalid("initial_value has %d characters", chars(initial))
	}
	switch kind {
	case "number_input":
		if _, ok := e["is_decimal_allowed"].(bool); !ok {
			return invalid("is_decimal_allowed is missing")
		}
		var bounds []float64
		for _, key := range []string{"min_value", "initial_value", "max_value"} {
			text, err := optional[string](e, key)
			if e[key] == nil || err == nil && text == "" {
				continue
			}
			x, bad := strconv.ParseFloat(text, 64)
			if err != nil || bad != nil || len(bounds) > 0 && x < bounds[len(bounds)-1] {
				return invalid("%s: %v", key, e[key])
			}
			bounds = append(bounds, x)
		}
	case "plain_text_input":
		low, err := optional[float64](e, "min_length")
		high, err2 := optional[float64](e, "max_length")
		if e["max_length"] == nil {
			high = maxInput
		}
		if err != nil || err2 != nil || low < 0 || low > high || high < 1 || high > maxInput || float64(chars(initial)) > high {
			return invalid("min_length %v, max_length %v, %d characters at first", e["min_length"], e["max_length"], chars(initial))
		}
	}
	return nil
}

// optional is a field that may be missing, and must have its type otherwise.
func optional[T any](o object, key string) (T, error) {
	x, ok := o[key].(T)
	if !ok && o[key] != nil {
		return x, invalid("%s has another type: %v", key, o[key])
	}
	return x, nil
}

func chars(s string) int { return utf8.RuneCountInString(s) }
