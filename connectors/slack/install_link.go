package slack

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
)

const (
	linkLife  = 24 * time.Hour   // of an install link
	stateLife = 10 * time.Minute // of a state; Slack's code lasts as long

	sumBytes    = 16
	inviteBytes = 8 + 10 // its end and a random number
)

// An invite lets one workspace install the app. It needs no store until it is used: the operator's command
// signs it with a key that is derived from the Client Secret.
type invite struct {
	raw [inviteBytes]byte
	end time.Time
}

// id names the invite where it is noted as used.
func (i invite) id() string { return hex.EncodeToString(i.raw[8:]) }

// valid reports whether its time is not over, and nothing says that it was used.
func (i invite) valid(all *installs, now time.Time) bool {
	_, spent := all.Spent[i.id()]
	return !spent && now.Before(i.end)
}

// InstallLink returns a link by which one workspace can install the app within a day, and when that ends.
func (o OAuth) InstallLink(connector string, now time.Time) (link string, end time.Time) {
	var raw [inviteBytes]byte
	end = now.Add(linkLife).Truncate(time.Second)
	binary.BigEndian.PutUint64(raw[:], uint64(end.Unix())) //nolint:gosec // it is after 1970
	_, _ = rand.Read(raw[8:])                              // never fails
	return o.URL + "install?" + url.Values{"code": {o.sealed("install link", connector, raw[:])}}.Encode(), end
}

// sealed returns data with a sum that only the Client Secret yields, for a purpose.
func (o OAuth) sealed(purpose, connector string, data []byte) string {
	return base64.RawURLEncoding.EncodeToString(append(data[:len(data):len(data)], o.sum(purpose, connector, data)...))
}

// opened returns the data of a sealed text of so many bytes; nil if it is not one.
func (o OAuth) opened(purpose, connector, text string, size int) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) != size+sumBytes || o.ClientSecret == "" || !hmac.Equal(raw[size:], o.sum(purpose, connector, raw[:size])) {
		return nil
	}
	return raw[:size]
}

func (o OAuth) sum(purpose, connector string, data []byte) []byte {
	m := hmac.New(sha256.New, []byte("claybot slack\x00"+o.ClientSecret))
	for _, part := range []string{purpose, connector, string(data)} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = m.Write(size[:]) // never fails
		_, _ = m.Write([]byte(part))
	}
	return m.Sum(nil)[:sumBytes]
}

// inviteOf reads the code of an install link.
func (o OAuth) inviteOf(connector, code string) (invite, bool) {
	raw := o.opened("install link", connector, code, inviteBytes)
	if raw == nil {
		return invite{}, false
	}
	return readInvite(raw), true
}

func readInvite(raw []byte) (i invite) {
	copy(i.raw[:], raw)
	i.end = time.Unix(int64(binary.BigEndian.Uint64(raw)), 0) //nolint:gosec // InstallLink wrote it
	return i
}

// stateFor returns what Slack gives back with its answer: it holds for one invite, for the browser that
// has the cookie, and for ten minutes.
func (o OAuth) stateFor(connector string, i invite, cookie string, now time.Time) string {
	var end [8]byte
	binary.BigEndian.PutUint64(end[:], uint64(now.Add(stateLife).Unix())) //nolint:gosec // it is after 1970
	browser := sha256.Sum256([]byte(cookie))
	return o.sealed("state", connector, append(append(i.raw[:inviteBytes:inviteBytes], end[:]...), browser[:sumBytes]...))
}

// inviteBy returns the invite of a state that a browser with a cookie brings in time.
func (o OAuth) inviteBy(connector, state, cookie string, now time.Time) (invite, bool) {
	raw := o.opened("state", connector, state, inviteBytes+8+sumBytes)
	if raw == nil || cookie == "" {
		return invite{}, false
	}
	end := time.Unix(int64(binary.BigEndian.Uint64(raw[inviteBytes:])), 0) //nolint:gosec // stateFor wrote it
	browser := sha256.Sum256([]byte(cookie))
	if !now.Before(end) || !hmac.Equal(raw[inviteBytes+8:], browser[:sumBytes]) {
		return invite{}, false
	}
	return readInvite(raw[:inviteBytes]), true
}

// authorizeURL is the page of Slack where a person installs the app.
//
// Shapes: docs.slack.dev/authentication/installing-with-oauth, read 2026-11-30.
func (o OAuth) authorizeURL(api string, scopes []string, state string) string {
	args := url.Values{"client_id": {o.ClientID}, "scope": {strings.Join(scopes, ",")}, "redirect_uri": {o.callback()}, "state": {state}}
	return strings.TrimSuffix(strings.TrimSuffix(api, "/"), "/api") + "/oauth/v2/authorize?" + args.Encode()
}

// callback is where Slack sends the browser afterwards. The manifest of the app lists it.
func (o OAuth) callback() string { return o.URL + "callback" }
