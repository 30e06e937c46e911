package service

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var odd = map[string]string{
	"PLAIN": "value", "EMPTY": "", "SPACES": "  a b  ", "QUOTES": `a "b" 'c'`, "DOLLAR": "$HOME ${X} `id`", "BACK": `a\nb\\`, "HASH": "#no comment", "EQUALS": "a=b=c", "UNICODE": "ключ 🔑",
}

// What is written into an environment file is read from it.
func TestEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "service.env")
	if env, err := readEnvironment(path); err != nil || len(env) != 0 {
		t.Errorf("without a file: %v, %v", env, err)
	}
	if err := write(path, environmentText(odd), 0o600); err != nil {
		t.Fatal(err)
	}
	env, err := readEnvironment(path)
	if err != nil || !maps.Equal(env, odd) {
		t.Errorf("read %q, %v; want %q", env, err, odd)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	for text, want := range map[string]string{
		"A=b\n; c\n\n# d\n E = 'x\"y' \n": "",
		"A=1\nexport B=2\n":               `service.env:2: want NAME="value"`,
		"no assignment, a secret perhaps": `service.env:1: want NAME="value"`,
		"A=\"b\n":                         "service.env:1: the value of A has a quote that does not end",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		env, err := readEnvironment(path)
		if want == "" && (err != nil || env["A"] != "b" || env["E"] != `x"y`) {
			t.Errorf("%q: %q, %v", text, env, err)
		}
		if want != "" && (err == nil || !strings.HasSuffix(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Nothing in a path, an argument or a variable is more than text to the managers.
func TestUnits(t *testing.T) {
	s := Service{
		Program: `/opt/a b/100%/"x"`, Args: []string{"serve", "--data-dir", `/data/$HOME\n`}, Dir: "/a 50%", Data: "/data", User: "claybot",
		Path: "/bin:/o%t", Env: map[string]string{"TOKEN": "<secret> & more"},
	}
	unit := s.Systemd("/etc/claybot/100%.env")
	for _, want := range []string{
		`ExecStart="/opt/a b/100%%/\"x\"" "serve" "--data-dir" "/data/$$HOME\\n"` + "\n",
		"WorkingDirectory=/a 50%%\n", "EnvironmentFile=-/etc/claybot/100%%.env\n", `Environment="PATH=/bin:/o%%t"` + "\n", "User=claybot\n", "Type=notify\n",
	} {
		if !strings.Contains(unit, want) {
			t.Errorf("the unit lacks %q:\n%s", want, unit)
		}
	}
	if strings.Contains(unit, "secret") {
		t.Errorf("the unit, which all users read, has a variable:\n%s", unit)
	}
	if s.User = ""; strings.Contains(s.Systemd("x"), "User=") || !strings.Contains(s.Systemd("x"), "WantedBy=default.target") {
		t.Errorf("the unit of a user:\n%s", s.Systemd("x"))
	}
	list := s.Launchd()
	for d := xml.NewDecoder(strings.NewReader(list)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, list)
		}
	}
	if !strings.Contains(list, "<string>&lt;secret&gt; &amp; more</string>") || !strings.Contains(list, "<string>/data/service.log</string>") {
		t.Errorf("the agent:\n%s", list)
	}
	if list := (&Manager{macOS: true}).Text(s); strings.Contains(list, "secret") {
		t.Errorf("a printed agent has a variable:\n%s", list)
	}
}

// A line break would end a value, and begin another setting.
func TestCheck(t *testing.T) {
	for want, s := range map[string]Service{
		"":                           {Program: "/a b", Env: odd},
		"has a line break, which no": {Program: "/a", Args: []string{"x\nUser=root"}},
		"the value of TOKEN has a":   {Program: "/a", Env: map[string]string{"TOKEN": "s3cret\nX=y"}},
	} {
		err := s.Check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// systemd hears of the start and of the end; without systemd nothing happens.
func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Ready(); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // the test ends
	t.Setenv("NOTIFY_SOCKET", path)
	for want, tell := range map[string]func() error{"READY=1": Ready, "STOPPING=1": Stopping} {
		if err := tell(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 100)
		n, err := conn.Read(b)
		if err != nil || string(b[:n]) != want {
			t.Errorf("heard %q, %v; want %q", b[:n], err, want)
		}
	}
	t.Setenv("NOTIFY_SOCKET", path+"-gone")
	if err := Ready(); err == nil {
		t.Error("no error without a listener")
	}
}

// What launchctl prints of an agent has its variables; its state has none.
func TestLaunchdState(t *testing.T) {
	said := "gui/501/io.github.claybot = {\n\tactive count = 1\n\tstate = running\n\n\tenvironment = {\n\t\tTOKEN => s3cret\n\t\tstate = s3cret\n\t}\n\n\tpid = 4711\n\tlast exit code = 0\n}\n"
	if got, want := launchdState(said), "state: running\npid: 4711\nlast exit code: 0\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
