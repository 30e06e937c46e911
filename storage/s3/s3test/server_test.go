package s3test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The signature of the example that the platform's documentation computes.
func TestSignature(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "https://examplebucket.s3.amazonaws.com/test.txt", nil)
	empty := sha256.Sum256(nil)
	for name, value := range map[string]string{
		"Range": "bytes=0-9", "X-Amz-Date": "20130524T000000Z", "X-Amz-Content-Sha256": hex.EncodeToString(empty[:]),
	} {
		r.Header.Set(name, value)
	}
	c := &call{s: &Server{cfg: Config{SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}}, r: r}
	got := c.sign(signature{date: "20130524", region: "us-east-1", service: "s3", headers: []string{"host", "range", "x-amz-content-sha256", "x-amz-date"}})
	if want := "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A client is as much of one as the tests of the refusals need.
type client struct {
	t   *testing.T
	s   *Server
	url string
}

func newClient(t *testing.T, cfg Config) *client {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	endpoint, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, s, endpoint}
}

// do sends a request that change may spoil after it was signed.
func (c *client) do(method, path, body string, change func(*http.Request)) (status int, header http.Header, answer string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	c.sign(r, body)
	if change != nil {
		change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

func (c *client) sign(r *http.Request, body string) {
	now, sum := time.Now().UTC(), sha256.Sum256([]byte(body))
	r.Header.Set("X-Amz-Date", now.Format(timeForm))
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	g := signature{date: now.Format("20060102"), region: "us-east-1", service: "s3", headers: []string{"host", "x-amz-content-sha256", "x-amz-date"}}
	r.Header.Set("Authorization", algorithm+" Credential="+AccessKey+"/"+g.date+"/us-east-1/s3/aws4_request, SignedHeaders="+
		strings.Join(g.headers, ";")+", Signature="+(&call{s: c.s, r: r}).sign(g))
}

// What the real platform refuses is refused, in its words.
func TestRefusals(t *testing.T) {
	c := newClient(t, Config{})
	if status, _, _ := c.do(http.MethodPut, "/files/a", "0123456789", nil); status != 200 {
		t.Fatalf("Put: %d", status)
	}
	_, _, id := c.do(http.MethodPost, "/files/up?uploads", "", nil)
	_, id, _ = strings.Cut(id, "<UploadId>")
	id, _, _ = strings.Cut(id, "</UploadId>")
	parts := func(list string) string { return "<CompleteMultipartUpload>" + list + "</CompleteMultipartUpload>" }
	_, h1, _ := c.do(http.MethodPut, "/files/up?partNumber=1&uploadId="+id, "one", nil)
	_, h2, _ := c.do(http.MethodPut, "/files/up?partNumber=2&uploadId="+id, "two", nil)
	one := "<Part><PartNumber>1</PartNumber><ETag>" + h1.Get("Etag") + "</ETag></Part>"
	two := "<Part><PartNumber>2</PartNumber><ETag>" + h2.Get("Etag") + "</ETag></Part>"
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, tt := range []struct {
		name, method, path, body string
		change                   func(*http.Request)
		status                   int
		code                     string
	}{
		{"not signed", "GET", "/files/a", "", func(r *http.Request) { r.Header.Del("Authorization") }, 403, "AccessDenied"},
		{"signature of version 2", "GET", "/files/a", "", header("Authorization", "AWS x:y"), 400, "AuthorizationHeaderMalformed"},
		{"another path", "GET", "/files/a", "", func(r *http.Request) { r.URL.Path = "/files/b" }, 403, "SignatureDoesNotMatch"},
		{"another query", "GET", "/files/a", "", func(r *http.Request) { r.URL.RawQuery = url.Values{"x-id": {"GetObject"}}.Encode() }, 403, "SignatureDoesNotMatch"},
		{"another method", "GET", "/files/a", "", func(r *http.Request) { r.Method = "DELETE" }, 403, "SignatureDoesNotMatch"},
		{"another host", "GET", "/files/a", "", func(r *http.Request) { r.Host = "other" }, 403, "SignatureDoesNotMatch"},
		{"another hash", "GET", "/files/a", "", header("X-Amz-Content-Sha256", unsigned), 403, "SignatureDoesNotMatch"},
		{"a header more", "GET", "/files/a", "", header("X-Amz-Acl", "public-read"), 403, "not signed"},
		{"another day", "GET", "/files/a", "", header("X-Amz-Date", "20130524T000000Z"), 403, "AccessDenied"},
		{"no date", "GET", "/files/a", "", header("X-Amz-Date", ""), 403, "AccessDenied"},
		{"another body", "PUT", "/files/b", "abc", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("abd")) }, 400, "XAmzContentSHA256Mismatch"},
		{"wrong md5", "PUT", "/files/b", "abc", header("Content-Md5", "AAAAAAAAAAAAAAAAAAAAAA=="), 400, "BadDigest"},
		{"no such key", "GET", "/files/none", "", nil, 404, "NoSuchKey"},
		{"no such bucket", "GET", "/other/a", "", nil, 404, "NoSuchBucket"},
		{"a long key", "GET", "/files/" + strings.Repeat("k", 1025), "", nil, 400, "KeyTooLongError"},
		{"no bucket", "GET", "/", "", nil, 501, "NotImplemented"},
		{"what is not emulated", "GET", "/files/a?acl", "", nil, 501, "NotImplemented"},
		{"beyond the end", "GET", "/files/a", "", header("Range", "bytes=10-"), 416, "InvalidRange"},
		{"changed", "GET", "/files/a", "", header("If-Match", `"other"`), 412, "PreconditionFailed"},
		{"no md5", "POST", "/files?delete", "<Delete/>", nil, 400, "Content-MD5"},
		{"a token", "GET", "/files?list-type=2&continuation-token=*", "", nil, 400, "InvalidArgument"},
		{"a number", "GET", "/files?list-type=2&max-keys=x", "", nil, 400, "InvalidArgument"},
		{"no such upload", "PUT", "/files/up?partNumber=1&uploadId=none", "x", nil, 404, "NoSuchUpload"},
		{"upload of another key", "PUT", "/files/other?partNumber=1&uploadId=" + id, "x", nil, 404, "NoSuchUpload"},
		{"part 0", "PUT", "/files/up?partNumber=0&uploadId=" + id, "x", nil, 400, "InvalidArgument"},
		{"part 10001", "PUT", "/files/up?partNumber=10001&uploadId=" + id, "x", nil, 400, "InvalidArgument"},
		{"abort of another key", "DELETE", "/files/other?uploadId=" + id, "", nil, 404, "NoSuchUpload"},
		{"no parts", "POST", "/files/up?uploadId=" + id, parts(""), nil, 400, "MalformedXML"},
		{"no XML", "POST", "/files/up?uploadId=" + id, "parts", nil, 400, "MalformedXML"},
		{"order", "POST", "/files/up?uploadId=" + id, parts(two + one), nil, 400, "InvalidPartOrder"},
		{"small", "POST", "/files/up?uploadId=" + id, parts(one + two), nil, 400, "EntityTooSmall"},
		{"a part that is missing", "POST", "/files/up?uploadId=" + id, parts(strings.Replace(one, ">1<", ">3<", 1)), nil, 400, "InvalidPart"},
		{"a part that was changed", "POST", "/files/up?uploadId=" + id, parts(strings.Replace(one, h1.Get("Etag"), "x", 1)), nil, 400, "InvalidPart"},
	} {
		status, header, answer := c.do(tt.method, tt.path, tt.body, tt.change)
		if status != tt.status || !strings.Contains(answer, tt.code) || header.Get("Content-Type") != "application/xml" {
			t.Errorf("%s: %d %s, want %d %s", tt.name, status, answer, tt.status, tt.code)
		}
	}
	if got := strings.Join(c.s.Keys("files"), " "); got != "a" || c.s.Uploads() != 1 {
		t.Errorf("keys %q, %d uploads: a refusal did something", got, c.s.Uploads())
	}
	if status, _, answer := c.do("POST", "/files/up?uploadId="+id, parts(two), nil); status != 200 || !strings.Contains(answer, "-1") {
		t.Errorf("one part: %d %s", status, answer)
	}
	if _, _, answer := c.do("GET", "/files/up", "", nil); answer != "two" || c.s.Uploads() != 0 {
		t.Errorf("the upload is %q", answer)
	}
}

func TestRanges(t *testing.T) {
	c := newClient(t, Config{})
	c.do("PUT", "/files/a%2Bb~c", "0123456789", nil)
	for _, tt := range []struct {
		method, give string
		status       int
		want         string
	}{
		{"GET", "", 200, "0123456789"},
		{"HEAD", "", 200, ""},
		{"GET", "bytes=3-", 206, "3456789"},
		{"GET", "bytes=3-4", 206, "34"},
		{"GET", "bytes=0-99", 206, "0123456789"},
	} {
		status, header, got := c.do(tt.method, "/files/a%2Bb~c", "", func(r *http.Request) {
			if tt.give != "" {
				r.Header.Set("Range", tt.give)
			}
		})
		if status != tt.status || got != tt.want || header.Get("Etag") == "" {
			t.Errorf("%s %s: %d %q %v, want %d %q", tt.method, tt.give, status, got, header, tt.status, tt.want)
		}
	}
	if status, _, body := c.do("HEAD", "/files/none", "", nil); status != 404 || body != "" {
		t.Errorf("HEAD of nothing: %d %q", status, body)
	}
}

// Lists come in pages, in order, and go on where they ended.
func TestPages(t *testing.T) {
	c := newClient(t, Config{Page: 2})
	for _, key := range []string{"b/2", "b/10", "a", "b/1", "b", "c", "b/%2B"} {
		c.do("PUT", "/files/"+key, key, nil)
	}
	var got []string
	query := url.Values{"list-type": {"2"}, "prefix": {"b/"}, "encoding-type": {"url"}}
	for pages := 1; ; pages++ {
		_, _, answer := c.do("GET", "/files?"+query.Encode(), "", nil)
		for i, key := range strings.Split(answer, "<Key>") {
			if key, _, _ = strings.Cut(key, "</Key>"); i > 0 {
				got = append(got, key)
			}
		}
		_, token, more := strings.Cut(answer, "<NextContinuationToken>")
		if more != strings.Contains(answer, "<IsTruncated>true") {
			t.Errorf("a page that contradicts itself: %s", answer)
		}
		if !more {
			if pages != 2 {
				t.Errorf("%d pages, want 2", pages)
			}
			break
		}
		token, _, _ = strings.Cut(token, "<")
		query.Set("continuation-token", token)
	}
	if list := strings.Join(got, " "); list != "b/%2B b/1 b/10 b/2" {
		t.Errorf("got %s", list)
	}
}

// A client that goes away in the middle leaves nothing.
func TestHalfABody(t *testing.T) {
	c := newClient(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	half := io.MultiReader(strings.NewReader("0123456789"), readerFunc(func() { cancel() }))
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, c.url+"/files/a", half)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 20
	c.sign(r, "01234567890123456789")
	if resp, err := http.DefaultClient.Do(r); err == nil {
		t.Errorf("half a body is answered with %s", resp.Status)
		_ = resp.Body.Close()
	}
	if keys := c.s.Keys("files"); len(keys) != 0 {
		t.Errorf("%v are there", keys)
	}
}

type readerFunc func()

func (f readerFunc) Read([]byte) (int, error) { f(); return 0, io.ErrUnexpectedEOF }

// A client that is still sending when the store ends leaves no file behind, and does not
// keep the store from removing its own.
func TestCloseWhileReceiving(t *testing.T) {
	for range 30 {
		c := newClient(t, Config{})
		here, there := io.Pipe()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, c.url+"/files/a", here)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 20
		c.sign(r, "01234567890123456789")
		sent := make(chan error, 1)
		go func() {
			resp, err := http.DefaultClient.Do(r)
			if err == nil {
				err = resp.Body.Close()
			}
			sent <- err
		}()
		if _, err := there.Write([]byte("0123456789")); err != nil {
			t.Fatal(err)
		}
		for c.s.Calls("PutObject") == 0 { // it is being answered, wherever it is
			runtime.Gosched()
		}
		if err := c.s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(c.s.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the folder is there: %v", err)
		}
		_ = there.Close() // the client may wait for more
		if err := <-sent; err == nil {
			t.Error("half a body is answered")
		}
	}
}
