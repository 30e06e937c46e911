package dashboard_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm/llmtest"
	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/runs"
	exploring "github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/web"
	"github.com/claybot/claybot/web/webtest"
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

// TestPictureNodes makes the pictures of the map of what is configured, see TestPictures.
func TestPictureNodes(t *testing.T) {
	dir := os.Getenv("CLAYBOT_PICTURES")
	if dir == "" {
		t.Skip("CLAYBOT_PICTURES names no folder")
	}
	r := newRig(t)
	shown := picturedNodes()
	r.desk = func(b *web.Backend) { b.Nodes = shown }
	r.start()
	b := r.browse()
	for name, width := range map[string]int64{"nodes": 1280, "nodes-phone": 390} {
		b.do("size", screen(width, 980, width < 500))
		b.open("/ui/nodes")
		b.shot(filepath.Join(dir, name+".png"))
	}
}

// picturedNodes are the nodes of a small office, in which a message is answered.
func picturedNodes() *webtest.Nodes {
	key := func(text string) nodes.Key {
		kind, name, _ := strings.Cut(text, "/")
		return nodes.Key{Kind: kind, Name: name}
	}
	node := func(text, kind string, uses ...string) nodes.View {
		n := nodes.View{Key: key(text), Type: kind, State: nodes.Running, Can: []string{nodes.Start, nodes.Stop, nodes.Restart, nodes.Test}}
		for _, use := range uses {
			n.Uses = append(n.Uses, key(use))
		}
		return n
	}
	wiki, team := node("mcp/wiki", "http"), node("connector/team", "slack", "profile/default", "flow/support")
	wiki.State, wiki.Text = nodes.Failed, "wiki.example cannot be reached: connection refused"
	office := node("mcp/office", "stdio in the workspace")
	office.State, office.Stopped = nodes.Stopped, &nodes.Order{By: web.Operator, At: claybot.Now()}
	all := webtest.NodesOf(
		node("connector/alerts", "webhook", "profile/sales"), team, node("connector/telegram", "telegram", "profile/default"), node("connector/web", "", "profile/default"), node("schedule/cron", "", "profile/default"),
		node("flow/support", "", "profile/sales"),
		node("profile/default", "react", "model/large", "tools/web", "tools/files", "mcp/office", "workspace/docker", "memory/notes"), node("profile/sales", "plan", "model/small", "tools/web", "mcp/wiki"),
		node("model/large", "anthropic"), node("model/small", "ollama"), node("tools/web", ""), node("tools/files", ""), office, wiki, node("workspace/docker", ""), node("memory/notes", ""), node("relay/audit", ""),
	)
	all.Flow(web.NodeLink{From: key("connector/telegram"), To: key("profile/default")}, web.NodeLink{From: key("profile/default"), To: key("tools/web")})
	return all
}
