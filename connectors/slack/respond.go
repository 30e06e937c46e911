package slack

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/storage"
	"github.com/claybot/claybot/texts"
)

// What claybot itself answers to a slash command is for the person who wrote it: an ephemeral message
// by the response_url of the command, also where the bot is no member. A direct message takes its
// place once the address is used up, expired or refused. The answer of a run is for the conversation,
// and goes there.
//
// The address lets anyone who has it write to that person and in that channel. It is stored before
// the message, so an answer after a restart finds it, sealed by a secret of the app, so that it can be read in
// no export or backup. No message, log, error, page or API has it. It is removed with its last use, or
// when it expires.
//
// Shapes: docs.slack.dev/interactivity/handling-user-interaction, Message responses, read 2026-11-28:
// 5 messages within 30 minutes, ephemeral unless said otherwise.

// methodRespond names requests to a response_url. They carry no token and have no tier.
const methodRespond = "response_url"

// errAddress is the cause of a refusal by a response_url, which takes nothing more.
var errAddress = errors.New("the response_url is not valid any more")

// An address is a response_url.
type address struct {
	url   string
	at    claybot.Time // when it came
	posts int          // by it, as far as claybot knows
}

// String hides the URL.
func (a address) String() string { return "response_url" }

// sealed returns a as it is stored below a key. It begins with its time, see storage.CheckpointRepeats.
func (c *Connector) sealed(key string, a address) string {
	return fmt.Sprintf("%013d %d %s", a.at, a.posts, base64.RawStdEncoding.EncodeToString(c.sealer().Seal(nil, nil, []byte(a.url), []byte(key))))
}

// unsealed reads the address that is stored below a key; the zero address if there is none, it is damaged,
// or its key is another one now.
func (c *Connector) unsealed(key, value string) address {
	var at, posts int64
	var text string
	if n, _ := fmt.Sscanf(value, "%d %d %s", &at, &posts, &text); n != 3 {
		return address{}
	}
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err == nil {
		data, err = c.sealer().Open(nil, nil, data, []byte(key))
	}
	if err != nil {
		return address{}
	}
	return address{string(data), claybot.Time(at), int(posts)}
}

// sealer seals with a key that is derived from the bot token, or from the secret of an app whose bot
// tokens Slack rotates, or that workspaces install.
func (c *Connector) sealer() cipher.AEAD {
	secret := c.cfg.BotToken
	if r := c.cfg.Rotation; r != nil {
		secret = r.ClientSecret
	}
	if x := c.cfg.Installed; x != nil {
		secret = x.ClientSecret // the same for all workspaces
	}
	sum := sha256.Sum256([]byte("claybot response_url\x00" + secret))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		panic(err) // the key has the right length
	}
	sealer, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the right block size
	}
	return sealer
}

// expires returns when Slack takes nothing more.
func (a address) expires() time.Time { return a.at.Time().Add(responseLife) }

// addressPrefix starts the keys of the addresses of all connectors.
const addressPrefix = storage.CheckpointRepeats + "respond/"

// answersSlash returns the key of the address for an answer of claybot itself to a slash command; empty
// for all other messages.
func (c *Connector) answersSlash(o claybot.Outgoing) string {
	id := strings.Split(string(o.Message), "/")
	if o.Run != "" || o.Edit != "" || o.File != nil || len(id) < 4 || id[0] != c.cfg.Name || id[2] != slashMark {
		return ""
	}
	return addressPrefix + strings.Join(id[:4], "/")
}

// Whispers implements connectors.Whisperer.
func (c *Connector) Whispers(o claybot.Outgoing) bool { return c.answersSlash(o) != "" }

// keepAddress stores the address of a slash command. Without Marks, the answer is a direct message.
func (c *Connector) keepAddress(ctx context.Context, in incoming) error {
	if in.respond == "" || c.cfg.Marks == nil {
		return nil
	}
	if u, err := url.Parse(in.respond); err != nil || !c.own(u) {
		c.log.Warn("slack command without a usable response_url; its answer is a direct message", "message", in.message.ID)
		return nil
	}
	key := c.answersSlash(claybot.Outgoing{Message: in.message.ID})
	if err := c.cfg.Marks.SetCheckpoint(ctx, key, c.sealed(key, address{url: in.respond, at: in.message.At})); err != nil {
		return fmt.Errorf("keep where a command is answered: %w", err)
	}
	select {
	case c.kept <- struct{}{}:
	default:
	}
	return nil
}

// address returns the stored address of a key that can still be used, or the zero address.
func (c *Connector) address(ctx context.Context, key string) (address, error) {
	if c.cfg.Marks == nil {
		return address{}, nil
	}
	value, err := c.cfg.Marks.Checkpoint(ctx, key)
	if err != nil {
		return address{}, fmt.Errorf("find where a command is answered: %w", err)
	}
	a := c.unsealed(key, value)
	if a.url != "" && (a.posts >= maxResponses || !time.Now().Before(a.expires())) {
		c.setAddress(ctx, key, "")
		return address{}, nil
	}
	return a, nil
}

// setAddress stores an address after its use, or removes it. If that fails, Slack refuses what is too
// much, and the address is removed when it expires.
func (c *Connector) setAddress(ctx context.Context, key, value string) {
	if err := c.cfg.Marks.SetCheckpoints(context.WithoutCancel(ctx), map[string]string{key: value}); err != nil {
		c.log.Warn("failed to update the response_url of a command", "err", err)
	}
}

// tidyAddresses removes the addresses that have expired, until ctx is done.
func (c *Connector) tidyAddresses(ctx context.Context) {
	if c.cfg.Marks == nil {
		return
	}
	for due := c.dropAddresses(ctx); ; {
		var timer <-chan time.Time
		if !due.IsZero() {
			timer = time.After(max(time.Until(due), tidyAgain))
		}
		select {
		case <-ctx.Done():
			return
		case <-c.kept:
			if due.IsZero() {
				due = time.Now().Add(responseLife)
			}
		case <-timer:
			due = c.dropAddresses(ctx)
		}
	}
}

// dropAddresses removes the addresses that have expired, and returns when the next one expires; zero
// if there is none.
func (c *Connector) dropAddresses(ctx context.Context) (next time.Time) {
	all, err := c.cfg.Marks.ListCheckpoints(ctx, addressPrefix+c.cfg.Name+"/")
	gone := make(map[string]string)
	for _, mark := range all {
		end := c.unsealed(mark.Key, mark.Value).expires()
		switch {
		case !time.Now().Before(end):
			gone[mark.Key] = ""
		case next.IsZero() || end.Before(next):
			next = end
		}
	}
	if err == nil && len(gone) > 0 {
		err = c.cfg.Marks.SetCheckpoints(ctx, gone)
	}
	if err != nil && ctx.Err() == nil {
		c.log.Warn("failed to remove expired addresses for answers to commands, trying again", "err", err)
		return time.Now().Add(tidyAgain)
	}
	return next
}

// sendPrivately sends an answer to a slash command to its person alone. It has no receipt: no edit,
// reaction or look-up finds it. What it cannot reach says nothing about the conversation.
func (c *Connector) sendPrivately(ctx context.Context, p post, key string) (string, error) {
	a, err := c.address(ctx, key)
	if err != nil {
		return "", err
	}
	p.Route.ThreadID = "" // Slack has no slash commands in threads
	if a.url != "" {
		p.method, p.respond = methodRespond, a.url
		_, err := c.write(ctx, p)
		var unknown *connectors.AmbiguousError
		switch a.posts++; {
		case errors.Is(err, errAddress), a.posts >= maxResponses && (err == nil || errors.As(err, &unknown)):
			c.setAddress(ctx, key, "")
		case err == nil, errors.As(err, &unknown):
			c.setAddress(ctx, key, c.sealed(key, a))
		}
		if !errors.Is(err, errAddress) {
			return "", err
		}
		c.log.Info("slack takes no more answers to a command where it was written, sending a direct message", "outgoing", p.ID, "err", err)
	}
	p.method, p.respond = methodPost, ""
	user, _ := c.local(p.Route.UserID)
	direct, err := c.direct(ctx, user)
	if err == nil {
		if direct != p.channel {
			p.channel, p.Text = direct, texts.Of(ctx).In(texts.SlackAnswersElsewhere)+"\n\n"+p.Text
		}
		_, err = c.write(ctx, p)
	}
	var permanent *connectors.PermanentError
	if errors.As(err, &permanent) {
		alive := *permanent
		alive.DeadRoute = false
		return "", &alive
	}
	return "", err
}

// respond posts an ephemeral message by a response_url. The error is an *AmbiguousError if the message
// may have arrived, has the cause errContent if Slack refuses the content, and errAddress for every
// other refusal.
func (c *Connector) respond(ctx context.Context, p post, text string, blocks []slackapi.Block) error {
	body, err := json.Marshal(struct {
		Text    string           `json:"text"`
		Type    string           `json:"response_type"`
		Replace bool             `json:"replace_original"`
		Thread  string           `json:"thread_ts,omitempty"`
		Blocks  []slackapi.Block `json:"blocks,omitempty"`
	}{text, "ephemeral", false, p.Route.ThreadID, blocks})
	if err != nil {
		return fmt.Errorf("%s: %w", p.method, err)
	}
	ctx, left := traced(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.respond, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", p.method, errAddress) // without the address, which the error quotes
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.calls.Do(req)
	if err != nil {
		return c.outcome(p, left(), err)
	}
	defer resp.Body.Close() // it was only read
	said, err := io.ReadAll(resp.Body)
	code := responseCode(said)
	switch k := classOf(code); {
	case err != nil:
		return p.unanswered(fmt.Errorf("%s: %w", p.method, c.clean(err, p.respond)))
	case resp.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // see caller
		return c.outcome(p, true, &slackapi.RateLimitedError{RetryAfter: time.Duration(seconds) * time.Second})
	case resp.StatusCode == http.StatusOK && code == "ok":
		return nil
	case resp.StatusCode >= http.StatusInternalServerError || k == server || resp.StatusCode == http.StatusOK && code == "":
		return p.unanswered(fmt.Errorf("%s: HTTP status %d %s", p.method, resp.StatusCode, code))
	case k == content:
		return &connectors.PermanentError{Err: fmt.Errorf("%w: %s: slack says %s", errContent, p.method, code)}
	default:
		return fmt.Errorf("%s: slack says %s: %w", p.method, cmp.Or(code, strconv.Itoa(resp.StatusCode)), errAddress)
	}
}

// responseCode returns what the body of a response says, ok or an error code, as text or JSON.
func responseCode(body []byte) string {
	var a struct {
		OK    bool   `json:"ok"`
		Error string `json:"error"`
	}
	switch err := json.Unmarshal(body, &a); {
	case err == nil && a.OK:
		return "ok"
	case err == nil:
		return word(a.Error)
	case bytes.ContainsAny(body, "<{ "): // a page, or a part of an object
		return ""
	}
	return word(strings.TrimSpace(string(body)))
}
