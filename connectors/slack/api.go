package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	slackapi "github.com/slack-go/slack"

	"github.com/claybot/claybot/connectors"
	"github.com/claybot/claybot/texts"
)

const (
	methodPost    = "chat.postMessage"
	methodUpdate  = "chat.update"
	methodStart   = "chat.startStream"
	methodAppend  = "chat.appendStream"
	methodStop    = "chat.stopStream"
	methodHistory = "conversations.history"
	methodList    = "conversations.list"
	methodInfo    = "conversations.info" // tier 3: at least 50 calls a minute
	methodReplies = "conversations.replies"
	methodView    = "views.open"
	methodHome    = "views.publish"
	methodOpen    = "conversations.open"
	methodWhisper = "chat.postEphemeral"
	methodConnect = "apps.connections.open"

	methodFileInfo  = "files.info"
	methodUploadURL = "files.getUploadURLExternal"
	methodComplete  = "files.completeUploadExternal"
	methodReact     = "reactions.add"
	methodUnreact   = "reactions.remove"
	methodStatus    = "assistant.threads.setStatus"
	methodSession   = "agents.sessions.setStatus"
	methodTitle     = "assistant.threads.setTitle"
	methodPrompts   = "assistant.threads.setSuggestedPrompts"
	methodUserInfo  = "users.info" // tier 4: at least 100 calls a minute
)

// unnamedWait is the pause after a rate limit response without Retry-After.
const unnamedWait = 5 * time.Second

// A class is what an error code of the Web API means for an attempt.
type class int

const (
	other   class = iota // refused, not sent; can be retried
	route                // permanent refusal by the channel
	content              // permanent refusal of the content
	account              // the token or the app
	rate                 // too many calls
	server               // Slack failed: the message may have been sent
	gone                 // the message to edit
	grows                // the message is a stream and takes no edit
)

// classOf classifies the error codes of all methods.
func classOf(code string) class {
	switch code {
	case "channel_not_found", "is_archived", "not_in_channel", "restricted_action", "user_disabled", "user_not_found", "is_inactive",
		"cannot_dm_bot", "messages_tab_disabled", "restricted_action_read_only_channel":
		return route
	case "msg_too_long", "msg_blocks_too_long", "invalid_blocks", "invalid_blocks_format", "invalid_attachments", "only_one_table_allowed", "no_text", "invalid_arguments", "thread_not_found",
		"cannot_reply_to_message", "invalid_thread_ts", "invalid_metadata_format", "invalid_metadata_schema", "metadata_too_large",
		"restricted_action_non_threadable_channel", "restricted_action_thread_only_channel": // the channel takes other messages
		return content
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope",
		"not_allowed_token_type", "no_permission", "org_login_required", "access_denied", "ekm_access_denied", "team_access_not_granted":
		return account
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return rate
	case "internal_error", "fatal_error", "request_timeout", "service_unavailable", "team_added_to_org":
		return server
	case "streaming_state_conflict":
		return grows
	case "message_not_found", "cant_update_message", "edit_window_closed":
		return gone
	}
	return other
}

// A caller is the HTTP client under the library. It limits the size of
// responses and gives every rate limit response a Retry-After that the library
// understands, of at most maxSilence.
//
// Calls below the address api with the bot token get it here, in a header, and no other requests do: the
// library knows anyToken in its place. A call
// that Slack refused because its token was rotated meanwhile is sent again with the next token.
type caller struct {
	http.Client
	api   string
	token func(ctx context.Context) (string, error)
	renew func(ctx context.Context, spent string) (string, error) // nil: the token lasts
}

// anyToken stands for the bot token in requests of the library.
const anyToken = "xoxb-any"

// Do sends req.
func (c *caller) Do(req *http.Request) (*http.Response, error) {
	if given := req.Header.Get("Authorization"); given != "" && given != "Bearer "+anyToken || !strings.HasPrefix(req.URL.String(), c.api) {
		return c.do(req) // with the app token, or to an address that works without
	}
	if err := unsigned(req); err != nil {
		return nil, err
	}
	token, err := c.token(req.Context())
	if err != nil {
		return nil, &unsentError{err}
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.do(req)
	if err != nil || c.renew == nil || !spent(resp) {
		return resp, err
	}
	next, err := c.renew(req.Context(), token)
	if err == nil && next == token {
		return resp, nil
	}
	_ = resp.Body.Close() // the refusal is read
	again := req.Clone(req.Context())
	if err == nil && req.GetBody != nil {
		again.Body, err = req.GetBody()
	}
	if err != nil {
		return nil, &unsentError{err}
	}
	again.Header.Set("Authorization", "Bearer "+next)
	return c.do(again)
}

// An unsentError means that a call had no effect, because there was no token for it.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// unsigned takes the token that the library knows out of a form.
func unsigned(req *http.Request) error {
	if req.GetBody == nil || !strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return err
	}
	form.Del("token")
	coded := form.Encode()
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(coded)), nil }
	req.Body, err = req.GetBody()
	req.ContentLength = int64(len(coded))
	return err
}

// maxRefusal is what a refusal has at most, in bytes.
const maxRefusal = 4 << 10

// spent reports whether Slack refuses a call because of its token, which may be one that was rotated.
// The body can still be read.
func spent(resp *http.Response) bool {
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	rest := io.MultiReader(bytes.NewReader(head), resp.Body)
	if err != nil {
		rest = io.MultiReader(bytes.NewReader(head), broken{err})
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{rest, resp.Body}
	var a struct{ Error string }
	if resp.StatusCode != http.StatusOK || len(head) == maxRefusal || json.Unmarshal(head, &a) != nil {
		return false
	}
	return slices.Contains([]string{"token_expired", "token_revoked", "invalid_auth"}, a.Error)
}

// A broken reader fails.
type broken struct{ error }

func (b broken) Read([]byte) (int, error) { return 0, b.error }

// do sends req as it is.
func (c *caller) do(req *http.Request) (*http.Response, error) {
	resp, err := c.Client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		wait := unnamedWait
		n, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 64)
		if n > 0 && (err == nil || errors.Is(err, strconv.ErrRange)) {
			wait = time.Duration(min(n, uint64(maxSilence/time.Second))) * time.Second
		}
		resp.Header.Set("Retry-After", strconv.Itoa(int(wait/time.Second)))
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswerBytes), resp.Body}
	return resp, nil
}

// noRedirect keeps the token from following a redirect to another host.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// traced returns a context for one call and a function that reports whether the
// request was written. After that, a failure without a response does not prove
// that it had no effect.
func traced(ctx context.Context) (context.Context, func() bool) {
	var left atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { left.Store(true) }})
	return ctx, left.Load
}

// judge returns Slack's error code, if any, and its class.
func judge(err error) (code string, k class) {
	var refusal slackapi.SlackErrorResponse
	if errors.As(err, &refusal) {
		code = word(refusal.Err)
		return code, classOf(code)
	}
	return "", other
}

// waitFor returns the wait that Slack requests, zero if none.
func waitFor(err error) time.Duration {
	var limited *slackapi.RateLimitedError
	if errors.As(err, &limited) {
		return limited.RetryAfter
	}
	var later *connectors.RetryError // there is no token now
	if errors.As(err, &later) {
		return later.After
	}
	if _, k := judge(err); k == rate {
		return unnamedWait
	}
	return 0
}

// paused describes a call that is to be tried again after d.
func paused(method string, d time.Duration, err error) error {
	var later *connectors.RetryError
	if errors.As(err, &later) {
		return &connectors.RetryError{After: d, Err: fmt.Errorf("%s: %w", method, later.Err)}
	}
	return &connectors.RetryError{After: d, Err: fmt.Errorf("%s: too many calls", method)}
}

// refused describes the failure of a call that sends no message. field is the
// configuration key of its token.
func (c *Connector) refused(method, field string, err error) error {
	if d := waitFor(err); d > 0 {
		return paused(method, d, err)
	}
	code, k := judge(err)
	if k == account {
		return c.accountError(method, field, code, err)
	}
	if code != "" {
		return fmt.Errorf("%s: slack says %s", method, code)
	}
	return fmt.Errorf("%s: %w", method, c.clean(err))
}

// accountError returns an error that names the token and the next step.
func (c *Connector) accountError(method, field, code string, err error) error {
	fix := c.anew("copy a new token from api.slack.com/apps and " + again(field, ""))
	var refusal slackapi.SlackErrorResponse
	if code == "missing_scope" && errors.As(err, &refusal) {
		if scope := word(refusal.Needed); scope != "" && field != c.cfg.AppTokenName {
			c.missing(scope)
		}
		fix = fmt.Sprintf("add the scope %s at api.slack.com/apps, OAuth & Permissions, reinstall the app and %s", word(refusal.Needed), connectors.Reload)
	}
	return &connectors.PermanentError{Says: texts.StoppedToken, Err: fmt.Errorf("%s: slack refuses %s: %s", method, field, code), Fix: fix}
}

// noScope says, for users and models, that the app lacks a scope.
func noScope(scope string) string {
	return "the app lacks the scope " + scope + "; the operator can add it at api.slack.com/apps, OAuth & Permissions"
}

// clean removes addresses, tokens and further secrets from an error of a library.
func (c *Connector) clean(err error, secrets ...string) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	text := err.Error()
	for _, secret := range slices.Concat(secrets, c.rotation.secrets(), []string{c.cfg.BotToken, c.cfg.AppToken}) {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[secret:slack]")
		}
	}
	if text != err.Error() {
		return errors.New(text)
	}
	return err
}

// word keeps only the characters of codes and scopes, so that no untrusted text
// gets into an error.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("_:.,", r) {
			return r
		}
		return -1
	}, s)
	return s[:min(len(s), 80)]
}
