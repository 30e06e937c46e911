package dashboard_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/runs"
	exploring "github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/web"
)

// TestPictures makes the pictures of the documentation: set CLAYBOT_PICTURES to
// the folder that they go to.
func TestPictures(t *testing.T) {
	dir := os.Getenv("CLAYBOT_PICTURES")
	if dir == "" {
		t.Skip("CLAYBOT_PICTURES names no folder")
	}
	r := newWorks(t)
	r.action = "The figures of October are in: 1,204 visits, 38 orders."
	r.engines[claybot.EngineExplore] = exploring.New(exploring.Config{
		Open: scripted.Demo().Open,
		Settings: func(*runs.Turn) exploring.Settings {
			return exploring.Settings{URL: scripted.DemoURL, Screens: true}
		},
	})
	r.start()
	r.mind.plan("weather", use("c1", "current_time", `{"zone":"Europe/Berlin"}`), llmtest.Say("It is *early*, and the forecast says:\n\n- sun until noon\n- rain after **three o'clock**\n\n```\n18 °C  |  12 km/h\n```"))
	r.mind.plan("colour", use("c2", "ask_user", `{"question":"Which colour do you like?","type":"select","options":["red","green","blue"]}`), llmtest.Say("You chose it."))
	r.ran(r.say("What is the weather like?"), claybot.RunSucceeded)
	run := r.ran(r.say("Then tell me the weather again, and the time"), claybot.RunSucceeded)
	b := r.browse()
	shot := func(name string) { b.shot(filepath.Join(dir, name+".png")) }
	r.ran(r.say("Ask me for a colour"), claybot.RunAwaiting)
	r.place = claybot.User("web", "figures", web.Operator)
	planned, _ := r.asks(claybot.EnginePlan, "Send Ann the figures of October")
	r.place = claybot.User("web", "shop", web.Operator)
	explored := r.ran(r.ask(claybot.EngineExplore, "Explore the shop"), claybot.RunSucceeded)
	pages := map[string]string{
		"map":   "/ui/runs/" + string(explored.ID),
		"plan":  "/ui/runs/" + string(planned.ID),
		"chats": "/", "agents": "/ui/agents", "agent": "/ui/agents/" + string(r.agent(main)), "runs": "/ui/runs", "run": "/ui/runs/" + string(run.ID),
		"schedule": "/ui/schedule", "deliveries": "/ui/deliveries", "usage": "/ui/usage", "access": "/ui/access", "health": "/ui/health",
		"why": "/ui/why?q=" + string(run.ID),
	}
	for name, path := range pages {
		for _, look := range []string{"light", "dark"} {
			b.do("look", chromedp.Evaluate[chromedp.Void](`localStorage.setItem("claybot.look", `+js(look)+`)`))
			height := int64(860)
			if name == "plan" {
				height = 1130
			}
			b.do("size", screen(1280, height, false))
			b.open(path)
			if name == "map" {
				b.do("show the map", chromedp.Evaluate[chromedp.Void](`document.querySelector("#explored").scrollIntoView()`))
			}
			shot(name + "-" + look)
		}
		b.do("size", screen(360, 740, true))
		b.open(path)
		shot(name + "-phone")
	}
}

// shot makes a picture of what the browser shows when all of it is drawn.
func (b *browser) shot(file string) {
	b.Helper()
	b.do("all is drawn", until(`Promise.all([document.fonts.ready, ...document.getAnimations().filter((a) => a.effect.getComputedTiming().iterations !== Infinity).map((a) => a.finished)]).then(() => true)`))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		b.Fatal(err)
	}
}

// TestPictureFlow makes the picture of a workflow, see TestPictures.
func TestPictureFlow(t *testing.T) {
	dir := os.Getenv("CLAYBOT_PICTURES")
	if dir == "" {
		t.Skip("CLAYBOT_PICTURES names no folder")
	}
	text, err := os.ReadFile("../../examples/flows/support.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := newShelf(t)
	s.put("order", orderFlow)
	s.editable()
	s.put("support", string(text))
	s.start()
	s.mind.plan("What does the customer want", llmtest.Say(`{"intent": "refund", "order": "1001"}`))
	at := s.visitor().begin("support", url.Values{"text": {"The mug of order 1001 came broken. Can I have a refund?"}, "trigger": {"desk"}})
	s.reached(at, claybot.RunAwaiting)
	b := s.browse()
	for name, width := range map[string]int64{"flow": 1280, "flow-phone": 360} {
		b.do("size", screen(width, 1130, width < 500))
		b.open(at + "&node=classify")
		b.shot(filepath.Join(dir, name+".png"))
	}
	b.do("size", screen(1280, 1130, false))
	b.open("/ui/flows/order/edit?node=clock")
	b.do("a change", fill("#f-note", "Looks at the clock."), push("#e-preview"), until(`document.querySelector("#diff")`))
	b.shot(filepath.Join(dir, "flow-edit.png"))
}
