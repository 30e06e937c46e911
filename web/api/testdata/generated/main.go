// A program with a client that a generator made of GET /openapi.json: it starts a run, waits for its end, and
// prints its state and output. The client makes each request once, so the program tries again, with a key.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/claybot/claybot/web/api/testdata/generated/claybot"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := claybot.NewClientWithResponses(os.Args[1], claybot.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Getenv("CLAYBOT_TOKEN"))
		return nil
	}))
	if err != nil {
		log.Fatal(err)
	}
	text, key := os.Args[2], os.Args[3]
	started := again(ctx, func(ctx context.Context) (*claybot.StartRunResponse, error) {
		return c.StartRunWithResponse(ctx, nil, claybot.StartRequest{Text: &text, Descriptor: &claybot.Target{ChannelId: key}, IdempotencyKey: &key})
	})
	if started.JSON202 == nil {
		log.Fatalf("start: %s", started.Body)
	}
	for {
		out := again(ctx, func(ctx context.Context) (*claybot.GetRunOutputResponse, error) {
			return c.GetRunOutputWithResponse(ctx, started.JSON202.RunId, nil)
		})
		if out.JSON200 == nil {
			log.Fatalf("output: %s", out.Body)
		}
		switch out.JSON200.State {
		case "SUCCEEDED":
			fmt.Println(out.JSON200.State, out.JSON200.Output)
			return
		case "FAILED":
			fmt.Println(out.JSON200.State, out.JSON200.Error.Text)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// again makes a request until claybot has answered it.
func again[T interface{ StatusCode() int }](ctx context.Context, request func(context.Context) (T, error)) T {
	for {
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		got, err := request(once)
		cancel()
		if err == nil && got.StatusCode() != http.StatusTooManyRequests && got.StatusCode() < http.StatusInternalServerError {
			return got
		}
		if ctx.Err() != nil {
			log.Fatal("no answer in a minute: ", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
