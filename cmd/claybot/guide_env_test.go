package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

// A variable of the environment wins over the file, so a step names it before and after a token is stored. What
// the operator wrote by hand stays, with its comments.
func TestSetupPageShadowed(t *testing.T) {
	g := newGuided(t)
	g.kill()
	const hand = "# The log of claybot\nlog: text # for people\n"
	if err := os.WriteFile(filepath.Join(g.dir, "claybot.yaml"), []byte(hand), 0o600); err != nil {
		t.Fatal(err)
	}
	usual := g.env
	g.env = append(append([]string{}, usual...), "TELEGRAM_BOT_TOKEN="+wrongToken)
	g.start()
	const says = "telegram.token comes from TELEGRAM_BOT_TOKEN, which wins over what you store here."
	for range 2 {
		if body := g.step("telegram"); !strings.Contains(body, says) || !strings.Contains(body, "the bot token is refused (401)") {
			t.Errorf("the step shows %s", body)
		}
		g.takes("telegram", "secret", telegramtest.Token)
	}
	g.kill()
	g.env = usual
	g.start()
	if body := g.step("telegram"); strings.Contains(body, "wins over") || !strings.Contains(body, "the token is that of @") {
		t.Errorf("without the variable, the step shows %s", body)
	}
	if !strings.HasPrefix(g.file(), hand) {
		t.Errorf("the file is %s", g.file())
	}
	g.private()
}

// A page that is open and waits for a person has the daemon read nothing anew.
func TestSetupPageWaits(t *testing.T) {
	g := newGuided(t)
	g.takes("telegram", "secret", telegramtest.Token)
	g.shows("telegram", `\?start=([A-Z2-9]{16})`)
	before := strings.Count(g.log.String(), "configuration reloaded")
	for range 5 {
		g.step("telegram")
	}
	if got := strings.Count(g.log.String(), "configuration reloaded"); got != before || before == 0 {
		t.Errorf("reloaded %d times, before it waited %d", got, before)
	}
}

// A step waits for another process that changes the file only as long as the browser does.
func TestSetupPageLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claybot.yaml")
	vars := map[string]string{"CLAYBOT_CONFIG": path}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &env{cli: &cli{}, lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }, environ: []string{"CLAYBOT_CONFIG=x"}}
	other, err := e.configFile()
	if err == nil {
		err = other.lock(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer other.unlock()
	gone, leave := context.WithCancel(t.Context())
	leave()
	g := &guide{env: e, ctx: gone, say: t.Logf}
	if err := g.save(setting{key: "budgets", value: "[{per: all, every: day, tokens: 5000}]"}); err == nil || !strings.Contains(err.Error(), "is being changed by another process") {
		t.Errorf("the step says %v", err)
	}
}
