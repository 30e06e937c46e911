package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/llm"
	"github.com/claybot/claybot/tools"
)

// An office is the server of the building in a scene: rooms can be booked and
// lunch ordered. The first order of lunch meets a kitchen that is not open yet.
type office struct {
	url string

	mu     sync.Mutex
	booked map[string]booking // by the key of who asked
	orders int                // tries to order lunch
	log    []string
}

// A booking is a room or a lunch that a person reserved in the office.
type booking struct {
	What string `json:"what"` // room or lunch
	Day  string `json:"day"`
	For  int    `json:"for"`
}

// ServeHTTP takes POST /{key} to book, DELETE /{key} to cancel. Both have the
// same effect however often they come.
func (o *office) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := strings.TrimPrefix(r.URL.Path, "/")
	switch r.Method {
	case http.MethodPost:
		var b booking
		if err := json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&b); err != nil {
			http.Error(w, "not a booking", http.StatusBadRequest)
			return
		}
		if b.What == "lunch" {
			if o.orders++; o.orders == 1 {
				http.Error(w, "the kitchen is not open yet", http.StatusServiceUnavailable)
				return
			}
		}
		if _, known := o.booked[key]; !known {
			if o.booked == nil {
				o.booked = make(map[string]booking)
			}
			o.booked[key] = b
			o.log = append(o.log, "+"+b.What)
		}
	case http.MethodDelete:
		if b, known := o.booked[key]; known {
			delete(o.booked, key)
			o.log = append(o.log, "-"+b.What)
		}
	}
}

// journal is what happened in the office, in order.
func (o *office) journal() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.log)
}

// call talks to the office. That it is busy may be over the next time.
func (o *office) call(ctx context.Context, method, key string, b booking) error {
	body, err := json.Marshal(b)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, o.url+"/"+key, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return errors.New("the office does not answer")
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	switch {
	case err != nil:
		return errors.New("the answer of the office was cut off")
	case resp.StatusCode == http.StatusServiceUnavailable:
		return &tools.Fault{Code: "unavailable", Text: strings.TrimSpace(string(said)), Retriable: true}
	case resp.StatusCode >= 300:
		return fmt.Errorf("the office says: %s", strings.TrimSpace(string(said)))
	}
	return nil
}

// tools are what an agent can do in the office.
func (o *office) tools() []tools.Tool {
	type want struct {
		Day    string `json:"day" jsonschema:"YYYY-MM-DD"`
		People int    `json:"people"`
	}
	type cancel struct {
		Key string `json:"key"`
	}
	book := func(what string, confirm bool) tools.Tool {
		return tools.New(tools.Spec{
			Tool:   llm.Tool{Name: "book_" + what, Description: "Books " + what + " in the office."},
			Effect: tools.Idempotent, Confirm: confirm, Undoes: true, Scopes: []string{"office"},
		}, func(ctx context.Context, env tools.Env, in want) (tools.Result, error) {
			key := string(env.Run) + "." + env.CallID
			if err := o.call(ctx, http.MethodPost, key, booking{what, in.Day, in.People}); err != nil {
				return tools.Result{}, err
			}
			done := fmt.Sprintf("%s for %d on %s", what, in.People, in.Day)
			args, err := json.Marshal(cancel{key})
			return tools.Result{Text: "booked: " + done, What: done, Undo: &claybot.ToolCall{Name: "cancel_booking", Args: string(args)}}, err
		})
	}
	undo := tools.New(tools.Spec{
		Tool:   llm.Tool{Name: "cancel_booking", Description: "Cancels a booking."},
		Effect: tools.Idempotent, Hidden: true, Scopes: []string{"office"},
	}, func(ctx context.Context, _ tools.Env, in cancel) (tools.Result, error) {
		return tools.Result{Text: "canceled"}, o.call(ctx, http.MethodDelete, in.Key, booking{})
	})
	return []tools.Tool{book("room", true), book("lunch", false), undo}
}
