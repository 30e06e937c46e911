package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/claybot/claybot/configs"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/texts"
)

// The status has the code of the doctor for a connector that a setting switches off, and for a port that is
// taken; of one that tries again by itself it does not say that it is to be corrected.
func TestConnectorFindings(t *testing.T) {
	c, _, err := configs.LoadText("claybot.yaml", []byte("telegram: {token: 'env:T', api_url: nonsense}\n"), func(name string) (string, bool) { return "123456:FAKE-token-for-the-tests", name == "T" })
	if err != nil || c.Connectors.Off("telegram") == "" {
		t.Fatal(c.Connectors, err)
	}
	d := &daemon{config: newSettings(c, slog.New(slog.DiscardHandler))}
	for _, x := range []struct {
		name, state, err string
		code, text, next string
	}{
		{"telegram", connectors.StateStopped, "it", "connector-off", "it is off: claybot.yaml:1: telegram.api_url", "correct it"},
		{"web", connectors.StateFailing, "the web page cannot use :1: another program uses that port; set it", "http-unusable", "another program uses that port", "set it"},
		{"discord", connectors.StateFailing, "no such host", "connector-failing", "no such host", "tries again by itself"},
		{"slack", connectors.StateStopped, "refused", "connector-failing", "refused", "correct that"},
		{"discord", connectors.StateStopped, texts.StoppedToken, "credential-refused", "off: no", "reset it"},
		{"discord", connectors.StateStopped, texts.StoppedNoToken, "credential-missing", "off: no", "reset it"},
		{"discord", connectors.StateStopped, texts.StoppedIntents, "discord-intent-off", "off: no", "reset it"},
	} {
		l := &findingList{hide: strings.NewReplacer()}
		status := overview.ConnectorStatus{Name: x.name}
		status.Health = connectors.Health{State: x.state, Err: x.err}
		if strings.HasPrefix(x.text, "off: ") { // the words of the doctor for the same refusal
			var pulse connectors.Pulse
			refusal := &connectors.PermanentError{Says: x.err, Fix: "reset it", Err: errors.New("no")}
			pulse.Stop(refusal)
			status.Health = pulse.Health()
			asked := &doctor{hide: strings.NewReplacer()}
			asked.refused(refusal)
			if f := asked.all[0]; f.Code != x.code || f.Next != x.next || f.Level != overview.LevelProblem {
				t.Errorf("the doctor says %+v", f)
			}
		}
		d.connectorFindings(l, status)
		if len(l.all) != 1 || l.all[0].Code != x.code || !strings.Contains(l.all[0].Text, x.text) || !strings.HasPrefix(strings.TrimPrefix(l.all[0].Next, "claybot "), x.next) || strings.Contains(l.all[0].Next, "claybot status") {
			t.Errorf("%s: %+v", x.name, l.all)
		}
	}
}
