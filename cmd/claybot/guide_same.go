package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/claybot/claybot/configs"
)

// A comparison has hashes of the settings of a caller, with which the daemon finds those of its own
// that differ. It has no secret: the salt is a new one each time.
type comparison struct {
	Salt []byte            `json:"salt"`
	Sums map[string][]byte `json:"sums"` // by key
}

// compared are the settings of models and accounts in force, by key. A daemon may have them from its
// own environment.
func compared(c configs.Config) map[string]string {
	var keys []string
	for _, k := range c.Model.Credentials() {
		keys = append(keys, k.Value())
	}
	return map[string]string{
		"model.provider": c.Model.ProviderName(), "model.base_url": c.Model.BaseURL, "model.name": c.Model.ID(), "model.key": strings.Join(keys, "\n"),
		"telegram.token": c.Connectors.Telegram.Token.Value(), "discord.token": c.Connectors.Discord.Token.Value(),
		"slack.bot_token": c.Connectors.Slack.BotToken.Value(), "slack.app_token": c.Connectors.Slack.AppToken.Value(),
	}
}

// newComparison returns the comparison with a configuration.
func newComparison(c configs.Config) *comparison {
	all := &comparison{Salt: make([]byte, sha256.Size), Sums: make(map[string][]byte)}
	_, _ = rand.Read(all.Salt) // it never fails
	for key, value := range compared(c) {
		all.Sums[key] = all.sum(value)
	}
	return all
}

func (c *comparison) sum(value string) []byte {
	h := hmac.New(sha256.New, c.Salt)
	h.Write([]byte(value))
	return h.Sum(nil)
}

// differs returns the keys whose values differ in a configuration, each with its origin there.
func (c *comparison) differs(from configs.Config) map[string]string {
	all := make(map[string]string)
	for key, value := range compared(from) {
		if sum, there := c.Sums[key]; there && !hmac.Equal(sum, c.sum(value)) {
			all[key] = originOf(from, key)
		}
	}
	return all
}

// originOf says where a setting is from.
func originOf(c configs.Config, key string) string {
	all := c.Value(key)
	if len(all) == 0 && key == "model.key" {
		all = c.Value("model.keys")
	}
	if len(all) == 0 || all[0].Origin == configs.OriginDefault {
		return "no setting"
	}
	if ref := all[0].Plain(); strings.HasPrefix(ref, "env:") || strings.HasPrefix(ref, "file:") {
		return fmt.Sprintf("%s (%s)", all[0].Origin, ref)
	}
	return all[0].Origin
}

// other says that a daemon reads another file than f; empty if it reads f.
func (f *configFile) other(r *reloaded, dir string) string {
	switch {
	case !f.unread(r):
		return ""
	case r.File == "":
		return fmt.Sprintf("the daemon that runs on %s reads no file, so restart it: claybot stop, then claybot serve", dir)
	}
	return fmt.Sprintf("the daemon that runs on %s reads another file, %s: set that up with: claybot --config %s setup; or stop the daemon: claybot stop", dir, r.File, r.File)
}

// reread has a running daemon read the file, and notes what it has from elsewhere. keys were changed.
func (s *guide) reread(f *configFile, again string, keys ...string) error {
	stored, flags := *s.env, *s.cli
	stored.cli, flags.Model = &flags, "" // the model of the flag is what is stored
	config, _, err := stored.load()
	if err != nil {
		return err
	}
	s.read, s.elsewhere, s.differs = false, "", nil
	r, err := f.reread(&stored, again, newComparison(config))
	if err != nil || r == nil {
		return err
	}
	s.read, s.elsewhere, s.differs = true, f.other(r, config.DataDir), make(map[string]string)
	for key, origin := range r.Differs {
		s.differs[key] = fmt.Sprintf("the running daemon uses another %s: its value is from %s, and that of this command from %s", key, origin, originOf(config, key))
	}
	var refused []string
	for _, text := range r.Refused {
		if slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(text, "connector "+strings.Split(key, ".")[0]+" ") }) {
			refused = append(refused, text)
		} else {
			s.say("! %s\n", text)
		}
	}
	if len(refused) > 0 {
		return configError{errors.New("the file is changed, but " + strings.Join(refused, "; "))}
	}
	return nil
}

// readNow has a running daemon read the file, and start a connector anew, if one is named.
func (s *guide) readNow(again string) error {
	f, err := s.configFile()
	if err != nil {
		return err
	}
	return s.reread(f, again)
}

// same returns an error if the running daemon has settings of a group from elsewhere than setup: what
// setup checked is not what the daemon uses.
func (s *guide) same(group string) error {
	for _, key := range slices.Sorted(maps.Keys(s.differs)) {
		if strings.HasPrefix(key, group+".") {
			return fmt.Errorf("%s. Make them the same, such as by removing a variable from the environment of the daemon or of this shell, or by storing the secret with file:PATH or -. Restart claybot if its environment changes%s", s.differs[key], s.again(group))
		}
	}
	return nil
}
