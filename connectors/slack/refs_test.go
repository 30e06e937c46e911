package slack

import (
	"slices"
	"testing"
)

func TestLinked(t *testing.T) {
	tests := []struct {
		link, name string
		want       []string
	}{
		{"https://acme.slack.com/archives/C012/p1700000000000100", "slack", []string{"slack/T1/C012/1700000000.000100"}},
		{"https://acme.slack.com/archives/C012/p1700000000000100?thread_ts=1.2&cid=C012", "work", []string{"work/T1/C012/1700000000.000100"}},
		{"http://acme.slack.com/archives/C012/p1700000000000100", "slack", nil},
		{"https://acme.slack.com.example.org/archives/C012/p1700000000000100", "slack", nil},
		{"https://acme.slack.com/archives/C012/1700000000000100", "slack", nil},
		{"https://acme.slack.com/archives/C012/p17000x0000000100", "slack", nil},
		{"https://acme.slack.com/archives/C012/p100", "slack", nil},
		{"https://acme.slack.com/archives/C012", "slack", nil},
		{"https://t.me/c/1/2", "slack", nil},
		{"not a link", "slack", nil},
		{"https://%zz", "slack", nil},
	}
	for _, tt := range tests {
		if got := linked(tt.link, tt.name, "T1"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.link, got, tt.want)
		}
	}
}

func TestRefsBeforeContact(t *testing.T) {
	if got := new(Connector).Refs("https://acme.slack.com/archives/C012/p1700000000000100"); got != nil {
		t.Errorf("got %q without knowing the team", got)
	}
}
