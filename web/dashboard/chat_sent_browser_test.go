package dashboard_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
)

// A file that an agent sends is a link in the chat, with its words or without.
func TestBrowserSentFile(t *testing.T) {
	r := newRig(t)
	r.start()
	b := r.browse()
	b.do("begin", until(`document.querySelector("#state").dataset.state === "live"`), typed("hello"), until(`document.querySelector(".bot .bubble")`))
	f, err := r.system.Control.Attach(t.Context(), main, claybot.FileReference{Name: "list <b>.txt", MIMEType: "text/plain"}, strings.NewReader("eggs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []claybot.Outgoing{{ID: "file/r/1", Text: "**here**"}, {ID: "file/r/2"}} {
		o.Kind, o.Agent, o.Route, o.Part, o.Parts, o.File, o.At = claybot.OutgoingFile, r.agent(main), main.Route(), 1, 1, &f, claybot.Now()
		if _, err := r.db.Enqueue(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.do("the files", chromedp.Reload(), until(`document.querySelectorAll(".bot.file .files a").length === 2`),
		until(`document.querySelector(".bot.file .bubble").innerHTML === "<p><strong>here</strong></p>"`),
		until(`document.querySelectorAll(".bot.file .bubble")[1].hidden`),
		until(`document.querySelector(".bot.file .files a").textContent === "list <b>.txt"`))
	b.do("the link leads to the bytes", until(`fetch(document.querySelector(".bot.file .files a").href).then((a) => a.text()).then((text) => text === "eggs")`))
}
