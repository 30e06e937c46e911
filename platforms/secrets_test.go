package platforms

import (
	"slices"
	"strings"
	"testing"
)

// Texts of people with and without secrets. None of these secrets is real.
func TestMaskSecrets(t *testing.T) {
	for _, tt := range []struct {
		text, want string
		kinds      []string
	}{
		{"hello", "hello", nil},
		{"", "", nil},
		{"xoxb-000000000000-not-a-token", "[removed: a Slack token]", []string{"a Slack token"}},
		{"use xapp-1-A000-not-a-token.", "use [removed: a Slack token].", []string{"a Slack token"}},
		{"123456789:NotARealTokenNotARealTokenNotAReal0", "[removed: a Telegram bot token]", []string{"a Telegram bot token"}},
		{"OTAwMDAwMDAwMDAwMDAwMDAx.FAKE00.FAKE-discord-token-for-tests-only", "[removed: a Discord bot token]", []string{"a Discord bot token"}},
		{"a ghp_NotARealTokenNotARealToken0000 b", "a [removed: a GitHub token] b", []string{"a GitHub token"}},
		{"github_pat_NotARealToken_NotARealToken0", "[removed: a GitHub token]", []string{"a GitHub token"}},
		{"glpat-NotARealTokenNotAReal", "[removed: a GitLab token]", []string{"a GitLab token"}},
		{"AKIANOTAREALKEY00000", "[removed: an AWS access key]", []string{"an AWS access key"}},
		{"AIzaNotARealKeyNotARealKeyNotARealKey0", "[removed: a Google key]", []string{"a Google key"}},
		{"sk_" + "live_NotARealKey0000", "[removed: a Stripe key]", []string{"a Stripe key"}},
		{"sk-proj-NotARealKey00NotARealKey", "[removed: an API key]", []string{"an API key"}},
		{"claybot_NotARealTokenNotARealTokenNotAReal0", "[removed: an API key]", []string{"an API key"}},
		{"eyJhbGciOiJub25lIn0.eyJzdWIiOiJub2JvZHkifQ.", "[removed: a signed token]", []string{"a signed token"}},
		{"postgres://app:s3cret@db.example.org/app", "postgres://app:[removed: a password]@db.example.org/app", []string{"a password"}},
		{"Authorization: Bearer NotARealToken0000", "Authorization: Bearer [removed: an access token]", []string{"an access token"}},
		{"password: hunter2hunter2", "password: [removed: a password or key]", []string{"a password or key"}},
		{`{"api_key": "NotARealKey0"}`, `{"api_key": "[removed: a password or key]"}`, []string{"a password or key"}},
		{"AWS_SECRET_ACCESS_KEY=NotARealKey/NotARealKey0", "AWS_SECRET_ACCESS_KEY=[removed: a password or key]", []string{"a password or key"}},
		{"key:\n-----BEGIN RSA PRIVATE KEY-----\nTm90IHJlYWw=\n-----END RSA PRIVATE KEY-----\nend", "key:\n[removed: a private key]\nend", []string{"a private key"}},
		{"-----BEGIN PRIVATE KEY-----\nTm90IHJlYWw= and cut off", "[removed: a private key]", []string{"a private key"}},
		{"token: AKIANOTAREALKEY00000", "token: [removed: an AWS access key]", []string{"an AWS access key"}},
		{"ghp_NotARealTokenNotARealToken0000 ghp_NotARealTokenNotARealToken0001", "[removed: a GitHub token] [removed: a GitHub token]", []string{"a GitHub token"}},
		{"both ghp_NotARealTokenNotARealToken0000 and AKIANOTAREALKEY00000", "both [removed: a GitHub token] and [removed: an AWS access key]", []string{"a GitHub token", "an AWS access key"}},

		// What people write about secrets, and what only resembles them.
		{"the password is wrong", "the password is wrong", nil},
		{"password: correct", "password: correct", nil},
		{"the secret: nobody-knows-it-yet", "the secret: nobody-knows-it-yet", nil},
		{"a token-based approach: sounds-good-to-me", "a token-based approach: sounds-good-to-me", nil},
		{"risk-adjusted-return-on-capital-2026-11", "risk-adjusted-return-on-capital-2026-11", nil},
		{"see https://example.org:8080/a@b and http://user@example.org/", "see https://example.org:8080/a@b and http://user@example.org/", nil},
		{"at 12:30 in room 1234567: bring the report", "at 12:30 in room 1234567: bring the report", nil},
		{"commit 0123456789abcdef0123456789abcdef01234567", "commit 0123456789abcdef0123456789abcdef01234567", nil},
		{"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", nil},
		{"sk-learn is a nickname of a library", "sk-learn is a nickname of a library", nil},
	} {
		got, kinds := MaskSecrets(tt.text)
		if got != tt.want || !slices.Equal(kinds, tt.kinds) {
			t.Errorf("%q:\n got %q %q\nwant %q %q", tt.text, got, kinds, tt.want, tt.kinds)
		}
	}
}

// A masked text has nothing left to mask, whatever it was.
func FuzzMaskSecrets(f *testing.F) {
	for _, s := range []string{
		"password=xoxb-000000000000-not-a-token", "a://b:[removed: c1234567]@d", "Bearer Bearer NotARealToken0000", "token: token: token: a1234567",
		"a://b:ghp_NotARealTokenNotARealToken0000@c", "123456:" + strings.Repeat("a", 40) + ":" + strings.Repeat("b", 40),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, kinds := MaskSecrets(s)
		if (once == s) != (len(kinds) == 0) {
			t.Errorf("%q became %q, of the kinds %q", s, once, kinds)
		}
		if twice, more := MaskSecrets(once); twice != once {
			t.Errorf("%q became %q, then %q, %q", s, once, twice, more)
		}
	})
}
