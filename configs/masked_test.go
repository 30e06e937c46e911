package configs

import (
	"strings"
	"testing"
)

// Tokens in the paths of addresses are in no output; other addresses are whole.
func TestMasked(t *testing.T) {
	for address, want := range map[string]string{
		"https://hooks.slack.com/services/T0AAA/B0BBB/fake":                        "https://hooks.slack.com/(secret)",
		"https://discord.com/api/webhooks/123/fake-token":                          "https://discord.com/api/webhooks/(secret)",
		"https://example.webhook.office.com/webhookb2/fake/IncomingWebhook/x":      "https://example.webhook.office.com/webhookb2/(secret)",
		"https://hook.eu1.example.org/fake":                                        "https://hook.eu1.example.org/(secret)",
		"https://relay.example.org/in/0a1b2c3d4e5f60718293":                        "https://relay.example.org/in/(secret)",
		"https://relay.example.org/in/11111111-2222-3333-4444-5555aaaa6666/events": "https://relay.example.org/in/(secret)",
		"https://api.openai.com/v1":                                                "https://api.openai.com/v1",
		"https://x.example.org/openai/deployments/gpt-4o-2024-08-06":               "https://x.example.org/openai/deployments/gpt-4o-2024-08-06",
		"http://127.0.0.1:11434/v1":                                                "http://127.0.0.1:11434/v1",
		"hooks/are/no/address/0a1b2c3d4e5f60718293":                                "hooks/are/no/address/0a1b2c3d4e5f60718293",
	} {
		if got := masked(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
		c, warnings := load(t, "relay: [{name: a, url: '"+address+"', secret: env:S}]", map[string]string{"S": "not-real"})
		if got := c.Value("relay"); len(warnings) == 0 && (len(got) != 1 || !strings.Contains(got[0].Value, want)) {
			t.Errorf("%s: shown as %v", address, got)
		}
	}
}

func TestMaskLine(t *testing.T) {
	for line, want := range map[string]string{
		"  token: MTk4fake":                         "  token: (secret)",
		"  token: env:TOKEN # why":                  "  token: env:TOKEN # why",
		"- url: https://hooks.slack.com/services/x": "- url: https://hooks.slack.com/(secret)",
		"log: json":                            "log: json",
		"token:":                               "token:",
		"  - sk-fakefakefake":                  "  (secret)",
		"telegram: {token: MTk4fake, rate: 5}": "telegram: {token: (secret), rate: 5}",
		"otlp: {headers: {api-key: 'fake'}}":   "otlp: {headers: {api-key: (secret)}}",
		"model: {key: \"fake\", name: x}":      "model: {key: (secret), name: x}",
	} {
		if got := MaskLine(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
