package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/devices/chromium"
	"github.com/claybot/claybot/devices/devicetest"
	"github.com/claybot/claybot/devices/scripted"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/runs/explore"
	"github.com/claybot/claybot/storage"
)

// exploreConfig is the configuration of the scene, but for the address.
const exploreConfig = `
access:
  allow: [telegram:1001]
agents:
  default:
    engine: explore
    explore: {hosts: [app.example.test], max_iterations: 40, no_progress: 6, screens: true}
`

// exploreScene lets the explorer walk through a small shop in a real browser or,
// where there is none, through a scripted application.
func exploreScene() scene {
	address := "http://app.example.test/"
	return scene{
		name:   "explore",
		about:  "a web application is explored in a real browser, and a map is made of it",
		model:  func(openaitest.Request) openaitest.Reply { return openaitest.Reply{Text: "I leave it to the rule."} },
		config: exploreConfig,
		ready: func(s *stage) error {
			if _, err := (chromium.Browser{}).Find(); err != nil {
				s.say("--", "%v; a scripted application is explored instead", err)
				s.daemon.engines.device = scripted.Demo().Open
				return nil
			}
			url, stop, err := listenLocal(new(devicetest.Shop))
			if err != nil {
				return err
			}
			s.stops = append(s.stops, stop)
			address = url + "/"
			s.mayExplore(strings.TrimPrefix(url, "http://"))
			return nil
		},
		play: func(ctx context.Context, s *stage) error { return s.walk(ctx, address) },
	}
}

// mayExplore lets the explorer reach a host, whose port is known only now.
func (s *stage) mayExplore(host string) {
	c := *s.daemon.config.Load()
	c.Agents.Profiles = maps.Clone(c.Agents.Profiles)
	p := c.Agents.Profiles[configs.DefaultProfile]
	settings := *p.Engine.Explore
	settings.Hosts = []string{host}
	p.Engine.Explore = &settings
	c.Agents.Profiles[configs.DefaultProfile] = p
	s.daemon.config.Store(&c)
}

// walk asks for a walk and looks at what came of it.
func (s *stage) walk(ctx context.Context, address string) error {
	if _, err := s.tell(ctx, "explore "+address, 1); err != nil {
		return err
	}
	if err := s.delivered(ctx); err != nil {
		return err
	}
	runs, err := s.daemon.system.Overview.RunPage(ctx, storage.RunQuery{Limit: 1})
	if err != nil || len(runs) == 0 {
		return fmt.Errorf("there is no run: %w", err)
	}
	var found explore.Output
	if err := json.Unmarshal(runs[0].Result, &found); err != nil {
		return fmt.Errorf("the run has no map: %w", err)
	}
	s.say("operator $", "claybot runs show %s: %s", runs[0].ID, runs[0].State)
	s.say("map", "%s, %s between them, %s, %s; ended: %s", count(len(found.Screens), "screen"), count(len(found.Transitions), "way"),
		count(len(found.DeadEnds), "dead end"), count(len(found.Errors), "error"), found.Reason)
	for _, screen := range found.Screens {
		mark := ""
		if screen.Dead {
			mark = "  (dead end)"
		}
		s.say("screen", "%s%s%s", strings.Repeat("  ", screen.Depth), screen.Title, mark)
	}
	switch {
	case runs[0].State != claybot.RunSucceeded:
		return fmt.Errorf("the walk ended as %s", runs[0].State)
	case len(found.Screens) < 4 || len(found.DeadEnds) == 0 || found.Map == "":
		return fmt.Errorf("%d screens, %d dead ends, map %q", len(found.Screens), len(found.DeadEnds), found.Map)
	}
	return nil
}
