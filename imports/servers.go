package imports

import (
	"strings"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/platforms"
)

var serverName = lazyregexp.New(`^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$`)

// secretsIn are the kinds of secrets in a command, of which one may stand behind its flag.
func secretsIn(command []string) []string {
	text := strings.Join(command, " ")
	for i, flag := range command[:max(0, len(command)-1)] {
		if strings.HasPrefix(flag, "-") && !strings.Contains(flag, "=") {
			text += " " + strings.TrimLeft(flag, "-") + "=" + command[i+1]
		}
	}
	_, kinds := platforms.MaskSecrets(text)
	return kinds
}

// AddServer adds an MCP server of the keys that OpenClaw and picoclaw share: command, args, env, url and
// headers. secret returns the secret that a value of env or headers is.
func (f *Find) AddServer(name string, v Value, secret func(string) (s Secret, why string)) {
	what := "MCP server " + oneWord(name)
	s := Server{Name: strings.Trim(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "-"), Dir: v.First("cwd", "workingDirectory").Text(), URL: v.At("url").Text()}
	values := v.At("env")
	if command := v.At("command").Text(); command != "" {
		s.Command = append([]string{command}, v.At("args").Texts()...)
	} else {
		values = v.At("headers")
	}
	kinds := secretsIn(s.Command)
	switch {
	case !serverName.MatchString(s.Name):
		f.Leave(what, "a server's name has 1 to 24 of a-z, 0-9 and -")
		return
	case len(s.Command) > 0 == (s.URL != ""):
		f.Leave(what, "it has neither a command nor an address, or both")
		return
	case s.URL != "" && address(s.URL) == nil:
		f.Leave(what, "its address cannot be used, or may hold a secret")
		return
	case len(kinds) > 0:
		f.Leave(what, "its command holds "+strings.Join(kinds, ", ")+"; put that into secrets of the server, see docs/mcp.md")
		return
	case v.First("transport", "type").Text() == "sse":
		f.Leave(what, "claybot speaks streamable HTTP, not SSE")
		return
	case v.First("auth", "env_file").There():
		f.Leave(what, "it logs in with OAuth, or reads variables from a file; see docs/mcp.md")
		return
	}
	for _, key := range values.Keys() {
		got, why := secret(values.At(key).Scalar())
		if why != "" {
			f.Leave(what, oneWord(key)+": "+why)
			return
		}
		s.Secrets = append(s.Secrets, Setting{key, got})
	}
	f.Servers = append(f.Servers, s)
}
