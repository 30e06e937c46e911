package slacktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A reply is what an app acknowledges a submission with.
type reply struct {
	came    bool
	payload json.RawMessage
}

// A Submission is what became of a modal that was sent.
type Submission struct {
	Closed bool
	Errors map[string]string // by block id; the modal is still open
	View   *View             // shown in place of the modal
}

// Submit lets who sees a modal fill it in and send it, and waits for the app's
// acknowledgement. The values are named by label or block id, "" being the only
// input: a string, a time or seconds since 1970 for a date and time, or labels;
// an input without a value keeps its initial one, and "" empties it. What
// Slack's own client would not send is an error.
func (s *Server) Submit(ctx context.Context, id string, values map[string]any) (Submission, error) {
	envelope, r, err := s.submit(id, values)
	if err != nil {
		return Submission{}, err
	}
	patient, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, ErrNoAnswer)
	defer cancel()
	err = s.wait(patient, "the acknowledgement of a modal", func() bool { return r.came })
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.replies, envelope)
	if err != nil {
		return Submission{}, err
	}
	return s.settle(id, r.payload)
}

// submit sends the envelope.
func (s *Server) submit(id string, values map[string]any) (string, *reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[id]
	if v == nil {
		return "", nil, fmt.Errorf("no open modal %s", id)
	}
	state, err := v.state(values)
	if err != nil {
		return "", nil, err
	}
	p := s.payload("view_submission", v.user)
	told := v.rendered(s.cfg.Team)
	view, _ := escaped(told).(object)
	view["state"] = object{"values": state} // what people type stays as it is
	p["view"] = view
	envelope := s.send("interactive", p)
	r := &reply{}
	s.replies[envelope] = r
	return envelope, r, nil
}

// settle does what the acknowledgement says. The lock is held.
func (s *Server) settle(id string, payload json.RawMessage) (Submission, error) {
	defer s.change()
	var a struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
		View   json.RawMessage   `json:"view"`
	}
	if len(payload) > maxPayloadBytes {
		return Submission{}, ErrNoAnswer
	}
	if len(payload) > 0 && json.Unmarshal(payload, &a) != nil {
		return Submission{}, ErrNoAnswer
	}
	v := s.views[id]
	if v == nil {
		return Submission{}, fmt.Errorf("no open modal %s", id)
	}
	switch a.Action {
	case "", "clear":
		delete(s.views, id)
		return Submission{Closed: true}, nil
	case "errors":
		for block, text := range a.Errors {
			if text == "" || !slices.ContainsFunc(v.shown().Inputs, func(in Input) bool { return in.Block == block }) {
				return Submission{}, fmt.Errorf("%w: an error at %q", ErrNoAnswer, block)
			}
		}
		return Submission{Errors: a.Errors}, nil
	case "update":
		if err := CheckView(a.View); err != nil {
			return Submission{}, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		v.modal = nil
		_ = json.Unmarshal(a.View, &v.modal) // checked
		now := v.shown()
		return Submission{View: &now}, nil
	}
	return Submission{}, fmt.Errorf("%w: action %q", ErrNoAnswer, a.Action)
}

// state is what stands in the inputs, as Slack tells it.
func (v *view) state(values map[string]any) (object, error) {
	state, used := object{}, 0
	for _, b := range v.blocks() {
		if b["type"] != "input" {
			continue
		}
		in := input(b)
		value := in.Initial
		for _, name := range []string{in.Label, in.Block, ""} {
			if x, ok := values[name]; ok {
				value = x
				used++
				break
			}
		}
		e, _ := b["element"].(object)
		told, err := in.told(e, value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Label, err)
		}
		told["type"] = in.Type
		state[in.Block] = object{in.Action: told}
	}
	if used != len(values) {
		return nil, fmt.Errorf("the inputs are %+v, the values %v", v.shown().Inputs, values)
	}
	return state, nil
}

// told is one value as Slack tells it, if its client lets it pass.
func (in Input) told(e object, value any) (object, error) {
	var names []string
	switch x := value.(type) {
	case time.Time:
		value = x.Unix()
	case int:
		value = int64(x)
	case []string:
		names = x
	case string:
		if x == "" {
			value = nil
		} else {
			names = []string{x}
		}
	}
	empty := value == nil || names != nil && len(names) == 0
	if empty && !in.Optional {
		return nil, errors.New("please complete this required field")
	}
	switch in.Type {
	case "static_select", "multi_static_select", "checkboxes":
		return in.chosen(e, names)
	case "datetimepicker":
		if _, ok := value.(int64); !ok && !empty {
			return nil, fmt.Errorf("%v is not a moment", value)
		}
		return object{"selected_date_time": value}, nil
	}
	text, isText := value.(string)
	if !isText && !empty {
		return nil, fmt.Errorf("%v is not a text", value)
	}
	switch in.Type {
	case "datepicker":
		_, err := time.Parse(time.DateOnly, text)
		return object{"selected_date": value}, unless(empty, err)
	case "timepicker":
		_, err := time.Parse("15:04", text)
		return object{"selected_time": value}, unless(empty, err)
	}
	return object{"value": value}, unless(empty, typed(e, in.Type, text))
}

func unless(empty bool, err error) error {
	if empty {
		return nil
	}
	return err
}

// typed is what Slack's client says about a text.
func typed(e object, kind, text string) error {
	low, _ := e["min_length"].(float64)
	high, limited := e["max_length"].(float64)
	switch {
	case kind == "email_text_input" && strings.Count(text, "@") != 1:
		return errors.New("enter a valid email address")
	case float64(chars(text)) < low, limited && float64(chars(text)) > high, chars(text) > maxInput:
		return fmt.Errorf("%d characters", chars(text))
	case kind != "number_input":
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return err
	}
	for key, sign := range map[string]float64{"min_value": 1, "max_value": -1} {
		bound, _ := e[key].(string)
		if b, err := strconv.ParseFloat(bound, 64); err == nil && sign*(x-b) < 0 {
			return fmt.Errorf("%s is %s", key, bound)
		}
	}
	return nil
}

// chosen is what was chosen of a menu or of boxes.
func (in Input) chosen(e object, names []string) (object, error) {
	all := []any{}
	for _, name := range names {
		o := pick(e, name)
		if o == nil {
			return nil, fmt.Errorf("no option %q; there are %q", name, in.Options)
		}
		all = append(all, o)
	}
	if n, ok := e["max_selected_items"].(float64); ok && len(all) > int(n) {
		return nil, fmt.Errorf("%d chosen, at most %v can be", len(all), n)
	}
	if in.Type != "static_select" {
		return object{"selected_options": all}, nil
	}
	if len(all) == 0 {
		return object{"selected_option": nil}, nil
	}
	return object{"selected_option": all[0]}, nil
}
