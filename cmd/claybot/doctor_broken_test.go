package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claybot/claybot/connectors/discord/discordtest"
	"github.com/claybot/claybot/connectors/slack"
	"github.com/claybot/claybot/connectors/slack/slacktest"
	"github.com/claybot/claybot/connectors/telegram/telegramtest"
	"github.com/claybot/claybot/llm/openai/openaitest"
	"github.com/claybot/claybot/overview"
	"github.com/claybot/claybot/storage/postgres"
)

// A brokenSetup is a set-up that does not work, and the finding of the doctor about it.
type brokenSetup struct {
	name   string
	file   string            // text of the configuration file; $DIR is the folder around it
	env    map[string]string // variables; $DIR likewise
	breaks func(*testing.T, *setupBench)
	flags  []string // of the doctor

	code string // of the finding
	says string // a piece of the cause
	next string // a piece of the next step

	// The same cause is in what these commands print.
	checks bool // claybot config check
	serves bool // claybot serve, which does not start

	// chat is a piece of what operators read in their chat while a daemon runs with the set-up, or has
	// read it; sameCause: the cause. It is empty for what cannot occur then, or what they read elsewhere.
	chat string
}

// sameCause is the chat of a set-up of which operators read the cause.
const sameCause = "\x00same"

// A setupBench is a folder with a configuration file and a data directory, and an environment.
type setupBench struct {
	dir, data, path string
	env             map[string]string

	disk     overview.DiskStatus // that a daemon measures
	patience time.Duration       // see env
}

// command runs a command of claybot in this process, and returns what it prints.
func (b *setupBench) command(args ...string) (out, errs string) {
	var o, e bytes.Buffer
	b.at(&o, &e).execute(append(args, "-c", b.path))
	return o.String(), e.String()
}

// at is the environment of commands.
func (b *setupBench) at(out, errs io.Writer) *env {
	at := &env{in: strings.NewReader(""), out: out, err: errs, environ: []string{}, patience: b.patience, lookup: func(name string) (string, bool) {
		v, ok := b.env[name]
		return v, ok
	}}
	for name, value := range b.env {
		at.environ = append(at.environ, name+"="+value)
	}
	return at
}

// doctor returns the findings of claybot doctor.
func (b *setupBench) doctor(t *testing.T, flags ...string) []postgres.Finding {
	t.Helper()
	out, errs := b.command(append([]string{"doctor", "--json"}, flags...)...)
	var said struct{ Findings []postgres.Finding }
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	return said.Findings
}

// write writes a file of the folder, and the folders above it.
func (b *setupBench) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newSetupBench(t *testing.T, x brokenSetup) *setupBench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &setupBench{dir: dir, data: filepath.Join(dir, "data"), path: filepath.Join(dir, "claybot.yaml"), disk: overview.DiskStatus{Free: 1 << 40, Total: 1 << 41}}
	b.env = map[string]string{"CLAYBOT_DATA_DIR": b.data, "CLAYBOT_HTTP_ADDR": "off", "HOME": dir, "DOCKER_HOST": "unix://" + dir + "/no-docker.sock"}
	for name, value := range x.env {
		b.env[name] = strings.ReplaceAll(value, "$DIR", dir)
		if value == unset {
			delete(b.env, name)
		}
	}
	b.write(t, "claybot.yaml", strings.ReplaceAll(x.file, "$DIR", dir))
	if x.breaks != nil {
		x.breaks(t, b)
	}
	return b
}

const unset = "\x00" // of a variable of the bench

func brokenSetups() []brokenSetup {
	return slices.Concat(brokenFiles, brokenValues, brokenDirectories, brokenCredentials, brokenServices, brokenAnswers)
}

// Each of these set-ups is broken in a single way. The doctor names its cause, with the code that scripts
// look for and the next step, and claybot config check and claybot serve say the same where they find it.
func TestBrokenSetups(t *testing.T) {
	all := brokenSetups()
	if len(all) < 60 {
		t.Errorf("%d set-ups", len(all))
	}
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			b := newSetupBench(t, x)
			before := treeOf(t, b.dir)
			all := b.doctor(t, x.flags...)
			if after := treeOf(t, b.dir); !slices.Equal(before, after) {
				t.Errorf("the doctor changed %q to %q", before, after)
			}
			found := false
			for _, f := range all {
				found = found || f.Code == x.code && strings.Contains(f.Text, x.says) && strings.Contains(f.Next, x.next)
				if !slices.ContainsFunc(doctorCodes, func(c doctorCode) bool { return c.code == f.Code }) || (f.Level == postgres.LevelOK) != (f.Code == postgres.CodeOK) ||
					f.Level != postgres.LevelOK && f.Next == "" || strings.Contains(f.Text+f.Next, "FAKE") {
					t.Errorf("a finding without a known code, without a next step, or with a secret: %+v", f)
				}
			}
			if !found {
				t.Errorf("no finding %s %q → %q in %+v", x.code, x.says, x.next, bads(all))
			}
			for command, runs := range map[string]bool{"config check": x.checks, "serve": x.serves} {
				if out, errs := "", ""; runs {
					if out, errs = b.command(strings.Fields(command)...); !strings.Contains(out+errs, x.says) {
						t.Errorf("claybot %s does not say %q, but: %s%s", command, x.says, out, errs)
					}
				}
			}
		})
	}
}

// bads returns the findings that are not ok.
func bads(all []postgres.Finding) []postgres.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f postgres.Finding) bool { return f.Level == postgres.LevelOK })
}

// treeOf lists what a folder has, with modes and hashes of contents.
func treeOf(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(path, "-shm") || strings.HasSuffix(path, "-wal") {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := path + " " + info.Mode().String()
		if info.Mode().IsRegular() {
			var text []byte
			text, err = os.ReadFile(path)
			what += fmt.Sprintf(" %x", sha256.Sum256(text))
		}
		all = append(all, what)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// startFake starts an emulated platform until the test ends, and returns its address.
func startFake(t *testing.T, s interface {
	Start() (string, error)
	Close()
},
) string {
	t.Helper()
	t.Cleanup(s.Close)
	address, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// withTelegram is an environment with a bot, which change breaks.
func withTelegram(change func(*telegramtest.Server)) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		s := telegramtest.New(telegramtest.Config{})
		address := startFake(t, s)
		if change != nil {
			change(s)
		}
		b.add(map[string]string{"TELEGRAM_BOT_TOKEN": telegramtest.Token, "TELEGRAM_API_URL": address})
	}
}

func withSlack(change func(*slacktest.Server)) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		s := slacktest.New(slacktest.Config{Manifest: slack.Manifest})
		web := httptest.NewServer(s)
		t.Cleanup(func() { s.Close(); web.Close() })
		if change != nil {
			change(s)
		}
		b.add(map[string]string{"SLACK_BOT_TOKEN": "xoxb-test", "SLACK_APP_TOKEN": "xapp-test", "SLACK_API_URL": web.URL + "/api/"})
	}
}

func withDiscord(change func(*discordtest.Server)) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		s := discordtest.New(discordtest.Config{})
		address := startFake(t, s)
		if change != nil {
			change(s)
		}
		b.add(map[string]string{"DISCORD_BOT_TOKEN": discordtest.Token, "DISCORD_API_URL": address})
	}
}

func withModel(cfg openaitest.Config) func(*testing.T, *setupBench) {
	return func(t *testing.T, b *setupBench) {
		address, stop, err := openaitest.New(cfg).Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
		b.add(map[string]string{"OPENAI_API_KEY": "sk-FAKE-key", "OPENAI_BASE_URL": address})
	}
}

// add sets variables that the set-up does not set itself.
func (b *setupBench) add(vars map[string]string) {
	for name, value := range vars {
		if _, own := b.env[name]; !own {
			maps.Copy(b.env, map[string]string{name: value})
		}
	}
}

// What works is asked about once, takes nothing, and changes nothing at the platforms.
func TestDoctorAsksOnline(t *testing.T) {
	t.Parallel()
	var telegram *telegramtest.Server
	var slack *slacktest.Server
	b := newSetupBench(t, brokenSetup{file: "workspaces: {provider: 'off'}\n", breaks: func(t *testing.T, b *setupBench) {
		withTelegram(func(s *telegramtest.Server) { telegram = s })(t, b)
		withSlack(func(s *slacktest.Server) { slack = s })(t, b)
		withDiscord(nil)(t, b)
		withModel(openaitest.Config{Key: "sk-FAKE-key", Models: []string{"gpt-5"}})(t, b)
	}})
	b.patience = time.Hour // the machine may be busy
	telegram.Say(7, 7, "hello")
	all := b.doctor(t, "--online")
	for _, f := range bads(all) {
		if !slices.Contains([]string{"disk", "writing", "limits"}, f.What) { // which are of the machine
			t.Errorf("%+v", f)
		}
	}
	for _, want := range []string{"Telegram takes the token of @", "Slack takes the bot token of ", "Slack takes the app token, and Socket Mode is on", "Discord takes the token of ", "takes OPENAI_API_KEY and lists the model"} {
		if !slices.ContainsFunc(all, func(f postgres.Finding) bool { return strings.Contains(f.Text, want) }) {
			t.Errorf("nothing says %q: %+v", want, all)
		}
	}
	for _, method := range []string{"getUpdates", "setWebhook", "deleteWebhook", "setMyCommands"} {
		if n := telegram.Calls(method); n > 0 {
			t.Errorf("%d calls of %s", n, method)
		}
	}
	if n := len(slack.Calls("apps.connections.open")); n != 1 {
		t.Errorf("Slack was asked for %d connections", n)
	}
	if n := len(telegram.Pending()); n != 1 {
		t.Errorf("%d updates wait, want 1", n)
	}
	asked := telegram.Calls("getMe")
	b.doctor(t)
	if telegram.Calls("getMe") != asked {
		t.Error("without --online, the doctor asked Telegram")
	}
}

// All services are asked at the same time, also those that are asked without --online, so that the time
// for a question bounds all of them: here, Discord answers only after Telegram was asked.
func TestDoctorAsksAllAtOnce(t *testing.T) {
	t.Parallel()
	asked, once := make(chan struct{}), sync.Once{}
	telegram := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { close(asked) })
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"ok":false,"error_code":401,"description":"Unauthorized"}`)
	}))
	t.Cleanup(telegram.Close)
	discord := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-asked:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"message":"401: Unauthorized","code":0}`)
	}))
	t.Cleanup(discord.Close)
	b := newSetupBench(t, brokenSetup{file: "workspaces: {provider: 'off'}\n"})
	b.patience = time.Minute
	b.add(map[string]string{"TELEGRAM_BOT_TOKEN": telegramtest.Token, "TELEGRAM_API_URL": telegram.URL, "DISCORD_BOT_TOKEN": discordtest.Token, "DISCORD_API_URL": discord.URL})
	all := bads(b.doctor(t, "--online"))
	for _, what := range []string{"telegram", "discord"} {
		if !slices.ContainsFunc(all, func(f postgres.Finding) bool { return f.What == what && f.Code == "credential-refused" }) {
			t.Errorf("%s was not asked: %+v", what, all)
		}
	}
}
