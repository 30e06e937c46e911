package main

import (
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/llm"
)

// The prices of a configuration stand above those that are known, in the same order each time.
func TestPricesIn(t *testing.T) {
	priced := func(prices map[string]configs.Price) configs.Model { return configs.Model{Name: "m", Prices: prices} }
	var c configs.Config
	c.Model = priced(map[string]configs.Price{"common": {Input: 1}})
	c.Agents.Profiles = map[string]configs.Profile{
		"a": {Model: priced(map[string]configs.Price{"gpt-5": {Input: 7}, "common": {Input: 2}, "x": {Input: 3}})},
		"b": {Model: priced(map[string]configs.Price{"x": {Input: 4}})}, "c": {Model: priced(nil)}, "d": {Model: priced(nil)},
	}
	for range 50 {
		p := pricesIn(c)
		for name, want := range map[string]float64{"gpt-5": 7, "common": 1, "x": 4, "gpt-4o": llm.DefaultPrices()["gpt-4o"].Input} {
			if p[name].Input != want {
				t.Fatalf("%s costs %v, want %v", name, p[name].Input, want)
			}
		}
	}
}
