// A program with a client that a generator made of GET /openapi.json: it starts a run, waits for its end, and
// prints its state and output, and then an event of it.
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
	text := os.Args[2]
	started, err := c.StartRunWithResponse(ctx, nil, claybot.StartRequest{Text: &text, Descriptor: &claybot.Target{ChannelId: "go"}})
	if err != nil || started.JSON202 == nil {
		log.Fatalf("start: %v, %+v", err, started)
	}
	for {
		out, err := c.GetRunOutputWithResponse(ctx, started.JSON202.RunId, nil)
		if err != nil || out.JSON200 == nil {
			log.Fatalf("output: %v, %+v", err, out)
		}
		if out.JSON200.State == "SUCCEEDED" {
			fmt.Println(out.JSON200.State, out.JSON200.Output)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
