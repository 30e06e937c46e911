package s3test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	algorithm = "AWS4-HMAC-SHA256"
	timeForm  = "20060102T150405Z"
	maxSkew   = 15 * time.Minute
	unsigned  = "UNSIGNED-PAYLOAD"
)

// A signature is what the header Authorization says.
type signature struct {
	access, date, region, service string
	headers                       []string
	hex                           string
}

var authorization = regexp.MustCompile(`^` + algorithm + ` Credential=([^/, ]+)/(\d{8})/([^/, ]+)/([^/, ]+)/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$`)

var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// authenticate checks who asks, as S3 does: the form, the key, the clock, the
// region, then the signature itself.
func (c *call) authenticate() *fault {
	header := c.r.Header.Get("Authorization")
	if header == "" {
		return refuse(http.StatusForbidden, "AccessDenied", "Access Denied")
	}
	m := authorization.FindStringSubmatch(header)
	if m == nil {
		return refuse(http.StatusBadRequest, "AuthorizationHeaderMalformed", "The authorization header is malformed")
	}
	g := signature{access: m[1], date: m[2], region: m[3], service: m[4], headers: strings.Split(m[5], ";"), hex: m[6]}
	if g.access != c.s.cfg.AccessKey {
		return refuse(http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records")
	}
	if c.r.Header.Get("X-Amz-Security-Token") != c.s.cfg.SessionToken {
		return refuse(http.StatusBadRequest, "InvalidToken", "The provided token is malformed or otherwise invalid")
	}
	if e := c.checkTime(g); e != nil {
		return e
	}
	if g.region != c.s.cfg.Region || g.service != "s3" {
		e := refuse(http.StatusBadRequest, "AuthorizationHeaderMalformed",
			fmt.Sprintf("The authorization header is malformed; the region '%s' is wrong; expecting '%s'", g.region, c.s.cfg.Region))
		e.Region = c.s.cfg.Region
		return e
	}
	for name := range c.r.Header {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "x-amz-") && !slices.Contains(g.headers, name) {
			return refuse(http.StatusForbidden, "AccessDenied", "There were headers present in the request which were not signed")
		}
	}
	if !slices.Contains(g.headers, "host") || !hmac.Equal([]byte(c.sign(g)), []byte(g.hex)) {
		return refuse(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided")
	}
	return c.payload()
}

func (c *call) checkTime(g signature) *fault {
	at, err := time.Parse(timeForm, c.r.Header.Get("X-Amz-Date"))
	if err != nil || at.Format("20060102") != g.date {
		return refuse(http.StatusForbidden, "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header")
	}
	c.s.mu.Lock()
	now := time.Now().Add(c.s.offset)
	c.s.mu.Unlock()
	if now.Sub(at).Abs() > maxSkew {
		return refuse(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large")
	}
	return nil
}

// payload notes the hash that the body must have.
func (c *call) payload() *fault {
	switch hash := c.r.Header.Get("X-Amz-Content-Sha256"); {
	case hashForm.MatchString(hash):
		c.hash = hash
		return nil
	case hash == unsigned:
		return nil
	case strings.HasPrefix(hash, "STREAMING-"):
		return refuse(http.StatusNotImplemented, "NotImplemented", "Payloads signed in chunks are not emulated")
	default:
		return refuse(http.StatusBadRequest, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	}
}

// sign computes the signature that a request must have.
func (c *call) sign(g signature) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%s\n%s\n", c.r.Method, escape(c.r.URL.Path, true), canonicalQuery(c.r.URL.Query()))
	for _, name := range g.headers {
		values := c.r.Header.Values(name)
		switch name {
		case "host":
			values = []string{c.r.Host}
		case "content-length":
			values = []string{fmt.Sprint(c.r.ContentLength)}
		}
		for i, v := range values {
			values[i] = strings.Join(strings.Fields(v), " ")
		}
		fmt.Fprintf(&b, "%s:%s\n", name, strings.Join(values, ","))
	}
	fmt.Fprintf(&b, "\n%s\n%s", strings.Join(g.headers, ";"), c.r.Header.Get("X-Amz-Content-Sha256"))
	scope := strings.Join([]string{g.date, g.region, g.service, "aws4_request"}, "/")
	sum := sha256.Sum256([]byte(b.String()))
	text := strings.Join([]string{algorithm, c.r.Header.Get("X-Amz-Date"), scope, hex.EncodeToString(sum[:])}, "\n")
	key := []byte("AWS4" + c.s.cfg.SecretKey)
	for _, part := range []string{g.date, g.region, g.service, "aws4_request"} {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func canonicalQuery(q url.Values) string {
	var pairs []string
	for name, values := range q {
		for _, v := range values {
			pairs = append(pairs, escape(name, false)+"="+escape(v, false))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape writes all bytes but those of RFC 3986's unreserved characters as %XX;
// slashes of a path stay.
func escape(s string, path bool) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		plain := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.~", c) >= 0
		if plain || path && c == '/' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
