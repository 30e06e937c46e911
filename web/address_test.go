package web_test

import (
	"net"
	"slices"
	"testing"

	"github.com/claybot/claybot/web"
)

func TestWhereThePageIsReached(t *testing.T) {
	own := []net.Addr{
		&net.IPNet{IP: net.ParseIP("127.0.0.1")},
		&net.IPNet{IP: net.ParseIP("::1")},
		&net.IPNet{IP: net.ParseIP("fd00::7")},
		&net.IPNet{IP: net.ParseIP("169.254.3.4")},
		&net.IPNet{IP: net.ParseIP("192.168.1.5")},
		&net.IPNet{IP: net.ParseIP("10.0.0.9")},
	}
	for _, tc := range []struct {
		addr    string
		own     []net.Addr
		want    []string
		network string
	}{
		{"127.0.0.1:8420", own, []string{"127.0.0.1:8420"}, "tcp4"},
		{"0.0.0.0:8420", own, []string{"127.0.0.1:8420", "192.168.1.5:8420"}, "tcp4"},
		{"0.0.0.0:8420", own[:4], []string{"127.0.0.1:8420"}, "tcp4"},
		{"[::]:8420", own, []string{"127.0.0.1:8420", "192.168.1.5:8420"}, "tcp"},
		{"[::1]:8420", own, []string{"[::1]:8420"}, "tcp"},
		{"192.168.1.5:80", own, []string{"192.168.1.5:80"}, "tcp4"},
		{"localhost:8420", own, []string{"localhost:8420"}, "tcp"},
		{":8420", own, nil, "tcp"},
	} {
		if got := web.Network(tc.addr); got != tc.network {
			t.Errorf("%s is listened to on %s, want %s", tc.addr, got, tc.network)
		}
		if got := web.Reachable(tc.addr, tc.own); tc.want != nil && !slices.Equal(got, tc.want) {
			t.Errorf("%s is reached at %v, want %v", tc.addr, got, tc.want)
		}
	}
}
