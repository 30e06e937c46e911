package explore_test

import (
	"bytes"
	"image/png"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/devices/devicetest"
	"github.com/claybot/claybot/runs"
	"github.com/claybot/claybot/runs/explore"
)

// The whole of a web application is found in a real browser.
func TestExploreInChromium(t *testing.T) {
	if _, err := (chromium.Browser{}).Find(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no chromium here, and CI=true asks for it: apt-get install chromium")
		}
		t.Skip("SKIPPED, a real browser explores nothing: no chromium here; apt-get install chromium")
	}
	shop := new(devicetest.Shop)
	srv := httptest.NewServer(shop)
	defer srv.Close()
	e := explore.New(explore.Config{Open: chromium.Browser{}.Open, Settings: func(*runs.Turn) explore.Settings {
		return explore.Settings{URL: srv.URL + "/", Screens: true, NoProgress: 12}
	}})
	j := newJournal("Look at everything.")
	j.run(t, e)
	out := j.output(t)
	want := []string{"Catalogue", "Imprint", "Order", "Something broke", "Teapots", "Thank you", "The blue pot", "Tour, part one", "Tour, part three", "Tour, part two"}
	if !slices.Equal(titles(out), want) || out.Reason != explore.ReasonExhausted {
		t.Errorf("reason %s, screens %q", out.Reason, titles(out))
	}
	if !slices.Equal(shop.Orders(), []string{"example"}) {
		t.Errorf("orders %q", shop.Orders())
	}
	var dead []string
	for _, s := range out.Screens {
		if s.Dead {
			dead = append(dead, s.Title)
		}
		if _, err := png.Decode(bytes.NewReader(j.files[s.File])); err != nil {
			t.Errorf("%s: %v", s.Title, err)
		}
	}
	if !slices.Equal(dead, []string{"Imprint"}) || len(out.Errors) != 1 || out.Errors[0].Text != "the server answered with error 500" {
		t.Errorf("dead ends %q, errors %+v", dead, out.Errors)
	}
	wellFormed(t, j.files[out.Map])
	contains(t, out.Report, "10 screens", "1 dead end", "1 error")
}
