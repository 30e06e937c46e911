package client_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/claybot/claybot/client"
)

func Example() {
	c := client.New("http://127.0.0.1:8420", os.Getenv("CLAYBOT_TOKEN"), nil)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := c.Ask(ctx, client.Message{
		Thread: "news",                    // its agent remembers
		Key:    "news-2026-11-21-morning", // tried again after a crash, it is one message
		Text:   "What changed today?",
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.State, out.Text)
}
