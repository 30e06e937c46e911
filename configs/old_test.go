package configs

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestOldNames reads what older versions understood: the example files of three commits,
// which name every key, with every variable that they name. Nothing is refused or unknown.
func TestOldNames(t *testing.T) {
	for _, commit := range []string{"064de30", "9c5ad07", "f8087b1"} {
		t.Run(commit, func(t *testing.T) {
			path := "testdata/" + commit + ".yaml"
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			vars := map[string]string{
				"OPENAI_API_KEY": "sk-x", "ANTHROPIC_API_KEY": "sk-ant-x", "TELEGRAM_BOT_TOKEN": "1:x", "SLACK_BOT_TOKEN": "xoxb-x",
				"SLACK_APP_TOKEN": "xapp-x", "ANALYTICS_SECRET": "not-real", "BRAVE_API_KEY": "not-real", "AWS_ACCESS_KEY_ID": "not-real",
				"AWS_SECRET_ACCESS_KEY": "not-real", "AWS_SESSION_TOKEN": "not-real", "CLAYBOT_STORAGE_URL": "postgres://claybot@db.example.org/claybot",
			}
			_, warnings, err := Load(path, environ(vars))
			if err != nil || len(warnings) > 0 {
				t.Errorf("got %v, %v", warnings, err)
			}
			for _, name := range regexp.MustCompile(`\b(CLAYBOT|TELEGRAM|SLACK|OPENAI|ANTHROPIC)_[A-Z_]+[A-Z]\b`).FindAllString(string(text), -1) {
				known := func(v variable) bool { return v.name == name }
				if _, given := vars[name]; !given && !slices.ContainsFunc(variables(), known) {
					t.Errorf("%s is not known any more", name)
				}
			}
		})
	}
}
