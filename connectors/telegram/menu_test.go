package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
)

func names(menu []telegramtest.Command) (all []string) {
	for _, m := range menu {
		all = append(all, m.Command)
	}
	return all
}

// Members of a group see fewer commands than its administrators, operators see theirs until they
// are operators no more, and each menu is in the language of the person.
func TestMenus(t *testing.T) {
	operators := []string{"7", "99"} // Telegram knows no chat with 99
	inBubble(t, Config{Marks: &memory{}, Operators: func() []string { return operators }}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		b.server.Say(8, 8, "hi")
		b.server.Mention(-100, 7, "hi")
		has := func(chat int64, administrator bool, want string, is bool) {
			t.Helper()
			menu := b.server.MenuOf(chat, administrator, "de")
			if slices.Contains(names(menu), want) != is || !slices.Contains(names(menu), "help") {
				t.Errorf("the menu in %d is %q; %s: want %v", chat, names(menu), want, is)
			}
			for _, m := range menu {
				if m.Command == "help" && m.Description == connectors.Commands[0].Help {
					t.Errorf("the menu in %d is in English", chat)
				}
			}
		}
		b.run()
		synctest.Wait()
		has(7, false, "pair", true)
		has(8, false, "pair", false)
		has(8, false, "language", true)
		has(-100, false, "language", false)
		has(-100, true, "language", true)
		has(-100, true, "pair", false)
		if got := b.server.MenuOf(8, false, "fr"); len(got) != len(connectors.Commands) || got[0].Description != connectors.Commands[0].Help {
			t.Errorf("the menu in French is %v", got)
		}
		_ = b.end()
		operators = nil
		b.conn = New(b.conn.cfg)
		b.run()
		synctest.Wait()
		has(7, false, "pair", false)
	})
}

// A menu of an operator that could not be removed, or not at all before a crash, is removed at a later
// start; one whose chat is gone is forgotten.
func TestMenusOfFormerOperators(t *testing.T) {
	var operators []string
	marks := &memory{}
	inBubble(t, Config{Marks: marks, Operators: func() []string { return operators }}, func(t *testing.T, b *bubble) {
		b.server.Say(7, 7, "hi")
		start := func(want bool, mark string, all ...string) {
			t.Helper()
			operators = all
			b.conn = New(b.conn.cfg)
			b.run()
			synctest.Wait()
			_ = b.end()
			if got := slices.Contains(names(b.server.MenuOf(7, false, "de")), "pair"); got != want {
				t.Errorf("operators %q: 7 has the menu of an operator: %v", all, got)
			}
			if got, _ := marks.Checkpoint(t.Context(), "telegram/1234567/operators"); got != mark {
				t.Errorf("operators %q: the mark is %q, want %q", all, got, mark)
			}
		}
		start(true, "7", "7")
		b.server.Fail(telegramtest.Fault{Method: "deleteMyCommands", Drop: true, Times: -1})
		start(true, "99 7", "99")
		start(true, "99 7")
		b.server.Heal()
		start(false, "")
		start(true, "7", "7")
		b.server.Fail(telegramtest.Fault{Method: "deleteMyCommands", Status: 400, Description: "Bad Request: chat not found", Times: -1})
		start(true, "")
	})
}

// An operator who has not written to the bot yet is no fault: the log has a line, without a call for each
// language.
func TestMenuWithoutChat(t *testing.T) {
	inBubble(t, Config{Operators: func() []string { return []string{"99"} }}, func(t *testing.T, b *bubble) {
		b.run()
		synctest.Wait()
		calls := 0
		for _, e := range b.server.Journal("setMyCommands") {
			if strings.Contains(e.Params, "99") {
				calls++
			}
		}
		if logs := b.logs.String(); strings.Contains(logs, "level=WARN") || strings.Count(logs, "no chat with the bot yet") != 1 || calls != 1 {
			t.Errorf("%d calls: %s", calls, logs)
		}
	})
}

// A marksFault fails the reads and writes of whose menus have the commands for operators.
type marksFault struct {
	memory
	read, write atomic.Bool
}

func (m *marksFault) Checkpoint(ctx context.Context, key string) (string, error) {
	if m.read.Load() && strings.HasSuffix(key, "/operators") {
		return "", errors.New("no read")
	}
	return m.memory.Checkpoint(ctx, key)
}

func (m *marksFault) SetCheckpoint(ctx context.Context, key, value string) error {
	if m.write.Load() && strings.HasSuffix(key, "/operators") {
		return errors.New("no write")
	}
	return m.memory.SetCheckpoint(ctx, key, value)
}

// While the mark of operators fails, those whom it is known to name have their menus, others get
// theirs once it works, and former operators lose theirs then.
func TestOperatorMenusRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		read, write bool
		known       bool // whether the mark can be read meanwhile
	}{
		"no read":  {read: true},
		"no write": {write: true, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			marks := &marksFault{}
			marks.marks = map[string]string{"telegram/1234567/operators": "7 9"}
			inBubble(t, Config{Marks: marks, Operators: func() []string { return []string{"7", "8"} }}, func(t *testing.T, b *bubble) {
				for _, id := range []int64{7, 8, 9} {
					b.server.Say(id, id, "hi")
				}
				has := func(chat int64, want bool) {
					t.Helper()
					if got := slices.Contains(names(b.server.MenuOf(chat, false, "de")), "pair"); got != want {
						t.Errorf("%d has the menu of an operator: %v", chat, got)
					}
				}
				b.conn.setOperatorMenu(t.Context(), "9")
				marks.read.Store(tt.read)
				marks.write.Store(tt.write)
				b.run()
				time.Sleep(time.Minute)
				has(7, tt.known)
				has(8, false)
				has(9, true)
				if n := strings.Count(b.logs.String(), "failed to note whose menus"); n != 1 {
					t.Errorf("%d warnings: %s", n, b.logs)
				}
				marks.read.Store(false)
				marks.write.Store(false)
				time.Sleep(time.Minute)
				has(7, true)
				has(8, true)
				has(9, false)
				if got, _ := marks.Checkpoint(t.Context(), "telegram/1234567/operators"); got != "7 8" {
					t.Errorf("the mark is %q", got)
				}
			})
		})
	}
}

// Every menu obeys Telegram's limits, in all languages; the emulator refuses what does not
// (core.telegram.org/bots/api#setmycommands, read 2026-11-28).
func TestMenuLimits(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, b *bubble) {
		entry := func(name, text string) string { return `{"command":"` + name + `","description":"` + text + `"}` }
		many := strings.TrimSuffix(strings.Repeat(entry("a", "b")+",", 101), ",")
		for params, want := range map[string]string{
			`{"commands":[` + many + `]}`:                                                "BOT_COMMANDS_TOO_MUCH",
			`{"commands":[` + entry("a", strings.Repeat("ü", 256)) + `]}`:                "",
			`{"commands":[` + entry("a", strings.Repeat("ü", 257)) + `]}`:                "BOT_COMMAND_DESCRIPTION_INVALID",
			`{"commands":[` + entry("A", "b") + `]}`:                                     "BOT_COMMAND_INVALID",
			`{"commands":[` + entry("a", "b") + `],"scope":{"type":"all"}}`:              "BotCommandScope",
			`{"commands":[` + entry("a", "b") + `],"scope":{"type":"chat","chat_id":5}}`: "chat not found",
			`{"commands":[` + entry("a", "b") + `],"language_code":"german"}`:            "language code",
			`{"commands":[` + entry("a", "b") + `],"scope":{"type":"all_group_chats"}}`:  "",
		} {
			var done bool
			err := b.conn.send.call(t.Context(), "setMyCommands", json.RawMessage(params), &done)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%.80s: %v, want %s", params, err, want)
			}
		}
	})
}
