package scripted

import (
	"fmt"

	"github.com/claybot/claybot/devices"
)

// DemoURL is where the application of Demo begins.
const DemoURL = "http://shop.test/"

// Demo is a small shop: a form that sends an order, a page that leads nowhere,
// one whose server fails, a tour in a circle, and one that ends the application.
func Demo() *App {
	link := func(label, to string) Step {
		return Step{Action: devices.Action{Kind: devices.Click, Label: label, Target: DemoURL + to}, To: to}
	}
	field := func(label, input string) Step {
		return Step{Action: devices.Action{Kind: devices.Type, Label: label, Input: input}}
	}
	home := Step{Action: devices.Action{Kind: devices.Click, Label: "Home", Target: DemoURL}, To: "home"}
	screens := map[string]Screen{
		"home": {Title: "Teapots", Text: "Welcome. Everything for tea.", Steps: []Step{
			link("Catalogue", "catalogue"), link("Order", "order"), link("Tour", "tour-1"), link("Imprint", "imprint"), link("News", "news"),
		}},
		"catalogue": {Title: "Catalogue", Text: "Pots and cups.", Steps: []Step{
			home, link("The blue pot", "pot"),
			{Action: devices.Action{Kind: devices.Select, Label: "Sort by", Options: []string{"price", "name"}}},
		}},
		"pot": {Title: "The blue pot", Text: "Holds a litre.", Steps: []Step{home, link("Order it", "order")}},
		"order": {Title: "Order", Text: "Who are you?", Steps: []Step{
			home, field("Name", "text"), field("E-mail", "email"),
			{Action: devices.Action{Kind: devices.Click, Label: "Send the order", Once: true}, To: "thanks", Needs: []string{"Name", "E-mail"}},
		}},
		"thanks":  {Title: "Thank you", Text: "Your order is on its way.", Steps: []Step{home}},
		"imprint": {Title: "Imprint", Text: "No way leads on from here."},
		"news":    {Title: "Something broke", Text: "Internal Server Error", Faults: []string{"the server answered with error 500"}, Steps: []Step{home}},
		"tour-1":  {Title: "Tour, part one", Steps: []Step{link("Next", "tour-2")}},
		"tour-2":  {Title: "Tour, part two", Steps: []Step{link("Next", "tour-3")}},
		"tour-3":  {Title: "Tour, part three", Steps: []Step{link("From the beginning", "tour-1"), home}},
	}
	for name, s := range screens {
		if s.URL = DemoURL; name != "home" {
			s.URL = fmt.Sprintf("%s%s", DemoURL, name)
		}
		screens[name] = s
	}
	return &App{Start: "home", Screens: screens}
}
