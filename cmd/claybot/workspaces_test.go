package main

import (
	"net/url"
	"testing"

	"github.com/claybot/claybot/egress"
	"github.com/claybot/claybot/workspace"
)

// What a workspace reaches by each mode of its network: nothing private, and no metadata.
func TestReachOfNetwork(t *testing.T) {
	full, allow := workspace.Network{Mode: workspace.NetworkFull}, workspace.Network{Mode: workspace.NetworkAllow, Allow: []string{"example.com"}}
	for _, tt := range []struct {
		network workspace.Network
		address string
		reached bool
	}{
		{full, "https://example.com/", true},
		{full, "https://example.com:22/", true},
		{full, "http://169.254.169.254/", false},
		{full, "http://168.63.129.16/", false},
		{full, "http://127.0.0.1:8420/", false},
		{full, "http://10.0.0.1/", false},
		{full, "http://[fd00:ec2::254]/", false},
		{allow, "https://example.com/", true},
		{allow, "https://example.com:22/", false},
		{allow, "https://example.org/", false},
		{workspace.Network{Mode: workspace.NetworkNone}, "https://example.com/", false},
	} {
		door, err := egress.New(reachOf(tt.network))
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(tt.address)
		if err != nil {
			t.Fatal(err)
		}
		if err := door.Check(u); (err == nil) != tt.reached {
			t.Errorf("%s, %s: %v", tt.network.Mode, tt.address, err)
		}
	}
}
