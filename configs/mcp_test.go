package configs

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestMCP(t *testing.T) {
	c, warnings := load(t, `
mcp:
  notes:
    command: [/opt/notes, --all]
    env: {LANG: C}
    secrets: {NOTES_TOKEN: env:NOTES}
    image: notes:1
    network: allow
    hosts: [API.example.org, "*.example.org:8443"]
    tools: {allow: ["get_*", list], deny: get_all}
    effects: {get_one: readOnly, set: idempotent, add: once}
    timeout: 90s
    trusted: true
  here: {command: /opt/here, where: host, dir: /srv}
  far: {url: "https://mcp.example.org/mcp", headers: {X-Team: a, X-Api-Key: "env:NOTES"}, token: "env:NOTES"}
  login: {url: "https://mcp.example.org/mcp", oauth: true}
  machine: {url: "https://mcp.example.org/mcp", oauth: {grant: client_credentials, client_id: me, client_secret: "env:NOTES", scopes: [read, write], redirect: "http://127.0.0.1:8421/x"}}
`, map[string]string{"NOTES": canary})
	if len(warnings) != 0 {
		t.Fatal(warnings)
	}
	if got, want := c.MCPNames(), []string{"notes", "here", "far", "login", "machine"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("servers %v, want %v", got, want)
	}
	plain := func(s MCPServer) MCPServer {
		if s.Process.Where == "" {
			s.Process.Where = MCPWorkspace
		}
		if s.Process.Network == "" {
			s.Process.Network = NetworkNone
		}
		if s.Timeout == 0 {
			s.Timeout = DefaultMCPTimeout
		}
		return s
	}
	secret := NewSecret("env:NOTES", canary)
	url := "https://mcp.example.org/mcp"
	want := []MCPServer{
		plain(MCPServer{
			Name: "notes",
			Process: MCPProcess{
				Command: []string{"/opt/notes", "--all"}, Env: map[string]string{"LANG": "C"}, Secrets: map[string]Secret{"NOTES_TOKEN": secret},
				Image: "notes:1", Network: NetworkAllow, Hosts: []string{"api.example.org", "*.example.org:8443"},
			},
			Allow: []string{"get_*", "list"}, Deny: []string{"get_all"},
			Effects: map[string]string{"get_one": EffectReadOnly, "set": EffectIdempotent, "add": EffectOnce}, Timeout: 90 * time.Second, Trusted: true,
		}),
		plain(MCPServer{Name: "here", Process: MCPProcess{Command: []string{"/opt/here"}, Where: MCPHost, Dir: "/srv"}}),
		plain(MCPServer{Name: "far", Remote: MCPRemote{URL: url, Headers: map[string]Secret{"X-Team": NewSecret("mcp.far.headers.X-Team", "a"), "X-Api-Key": secret}, Token: secret}}),
		plain(MCPServer{Name: "login", Remote: MCPRemote{URL: url, OAuth: &MCPOAuth{Grant: GrantCode}}}),
		plain(MCPServer{Name: "machine", Remote: MCPRemote{URL: url, OAuth: &MCPOAuth{
			Grant: GrantClient, ClientID: "me", ClientSecret: secret, Scopes: []string{"read", "write"}, Redirect: "http://127.0.0.1:8421/x",
		}}}),
	}
	if !reflect.DeepEqual(c.Tools.MCP, want) {
		t.Errorf("got  %+v\nwant %+v", c.Tools.MCP, want)
	}
	if s := fmt.Sprintf("%+v %#v %v", c.Tools.MCP, c.Tools.MCP, c); strings.Contains(s, canary) {
		t.Error("a secret is shown")
	}
}

// A server with a mistake is left out whole, and costs no other server.
func TestBrokenMCP(t *testing.T) {
	const good = "  good: {command: /x}\n"
	for _, tt := range []struct{ name, server, want string }{
		{"no group", "bad: 3", "mcp.bad: want a group of keys"},
		{"name", "Bad_1: {command: /x}", "mcp.Bad_1: a server's name has 1 to 24"},
		{"nothing", "bad: {timeout: 3s}", "mcp.bad: wants either command or url"},
		{"both", `bad: {command: /x, url: "http://x/"}`, "mcp.bad: wants either command or url"},
		{"empty command", `bad: {command: []}`, "mcp.bad: wants either command or url"},
		{"password in url", `bad: {url: "http://a:canary@x/"}`, "mcp.bad.url: an address must not hold a user name"},
		{"query in url", `bad: {url: "http://x/?key=canary"}`, "mcp.bad.url: an address must not hold a query"},
		{"unknown key", "bad: {command: /x, trustd: true}", "mcp.bad.trustd: unknown key"},
		{"where", "bad: {command: /x, where: here}", `mcp.bad.where: "here" is not one of`},
		{"relative on the host", "bad: {command: npx, where: host}", "mcp.bad: on the host, the command is the whole path"},
		{"image on the host", "bad: {command: /x, where: host, image: y}", "mcp.bad: image and network are for a server in the workspace"},
		{"headers of a command", "bad: {command: /x, headers: {A: b}}", "mcp.bad: headers, token and oauth"},
		{"env of a url", `bad: {url: "http://x/", env: {A: b}}`, "mcp.bad: where, dir, env"},
		{"secret in env", "bad: {command: /x, env: {MY_TOKEN: canary}}", "mcp.bad.env.MY_TOKEN: the value is a secret"},
		{"reference in env", "bad: {command: /x, env: {A: env:B}}", "mcp.bad.env.A: the value is a secret"},
		{"secret in command", "bad: {command: [/x, sk-canary]}", "mcp.bad.command: a secret must not stand in the file"},
		{"secret as it is", "bad: {command: /x, secrets: {A: canary}}", "mcp.bad.secrets.A: a secret must not stand in the file"},
		{"secret that is not set", "bad: {command: /x, secrets: {A: env:NOT_SET}}", "mcp.bad.secrets.A: the environment variable"},
		{"variable", "bad: {command: /x, env: {\"A=B\": c}}", `mcp.bad.env.A=B: "A=B" is not the name`},
		{"twice", "bad: {command: /x, env: {A: c}, secrets: {A: env:SET}}", `mcp.bad: "A" is in env and in secrets`},
		{"hosts alone", "bad: {command: /x, hosts: [a.b]}", "mcp.bad: network: allow and hosts"},
		{"allow alone", "bad: {command: /x, network: allow}", "mcp.bad: network: allow and hosts"},
		{"host", `bad: {command: /x, network: allow, hosts: ["http://a"]}`, `mcp.bad.hosts: "http://a" is not a host`},
		{"timeout", "bad: {command: /x, timeout: 2h}", `mcp.bad.timeout: "2h" is not a duration`},
		{"pattern", `bad: {command: /x, tools: {allow: "["}}`, `mcp.bad.tools.allow: "[" is not a pattern`},
		{"several patterns in one", `bad: {command: /x, tools: {deny: "delete_*, drop_*"}}`, `mcp.bad.tools.deny: "delete_*, drop_*" is not a pattern such as get_*, one for each entry`},
		{"patterns with a comma", `bad: {command: /x, tools: {deny: ["delete_*,drop_*"]}}`, `mcp.bad.tools.deny: "delete_*,drop_*" is not a pattern`},
		{"patterns with a bar", `bad: {command: /x, tools: {deny: "delete_*|drop_*"}}`, `mcp.bad.tools.deny: "delete_*|drop_*" is not a pattern`},
		{"patterns in braces", `bad: {command: /x, tools: {deny: "{delete,drop}_*"}}`, `mcp.bad.tools.deny: "{delete,drop}_*" is not a pattern`},
		{"patterns in lines", `bad: {command: /x, tools: {deny: "delete_*\ndrop_*"}}`, `mcp.bad.tools.deny: "delete_*\ndrop_*" is not a pattern`},
		{"no pattern", `bad: {command: /x, tools: {allow: []}}`, "mcp.bad.tools.allow: names no tool, while no list allows all"},
		{"effect", "bad: {command: /x, effects: {a: none}}", `mcp.bad.effects.a: "none" is not one of`},
		{"token and oauth", `bad: {url: "http://x/", token: "env:SET", oauth: true}`, "mcp.bad: wants either token or oauth"},
		{"token twice", `bad: {url: "http://x/", token: "env:SET", headers: {authorization: "env:SET"}}`, "mcp.bad: wants either token or the header"},
		{"client without secret", `bad: {url: "http://x/", oauth: {grant: client_credentials, client_id: a}}`, "mcp.bad: the grant client_credentials needs"},
		{"oauth in words", `bad: {url: "http://x/", oauth: please}`, `mcp.bad.oauth: "please" is not one of`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, "mcp:\n  "+tt.server+"\n"+good)
			c, warnings, err := Load(path, environ(map[string]string{"SET": canary}))
			if err != nil {
				t.Fatal(err)
			}
			if got := c.MCPNames(); !reflect.DeepEqual(got, []string{"good"}) {
				t.Errorf("servers %v", got)
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Key+": "+warnings[0].Text, tt.want) || !strings.HasSuffix(warnings[0].Text, "the server is left out") {
				t.Errorf("warnings %v, want %s", warnings, tt.want)
			}
			for _, w := range warnings {
				if strings.Contains(w.String(), "canary") {
					t.Errorf("a secret is shown: %s", w)
				}
			}
		})
	}
	for file, want := range map[string]string{"mcp: 3\n": "want names of servers", "mcp: [a]\n": "want names of servers"} {
		_, warnings := load(t, file, nil)
		if len(warnings) != 1 || !strings.HasPrefix(warnings[0].Text, want) {
			t.Errorf("%q: %v", file, warnings)
		}
	}
}
