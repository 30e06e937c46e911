package s3test

import (
	"crypto/md5" //nolint:gosec // the protocol has it
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An object is what lies below a key.
type object struct {
	file string
	size int64
	etag string // without quotes
	kind string // Content-Type
	at   time.Time
}

// create makes a file for a body.
func (s *Server) create() (*os.File, error) {
	s.mu.Lock()
	s.files++
	n := s.files
	s.mu.Unlock()
	return os.Create(filepath.Join(s.dir, strconv.Itoa(n)))
}

// receive keeps the body of a call in a file, once its hashes are right. A
// client that goes away meanwhile leaves nothing.
func (c *call) receive() (object, *fault) {
	switch {
	case c.r.ContentLength < 0:
		return object{}, refuse(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header")
	case c.r.ContentLength > maxBody:
		return object{}, refuse(http.StatusBadRequest, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size")
	}
	f, err := c.s.create()
	if err != nil {
		return object{}, refuse(http.StatusInternalServerError, "InternalError", err.Error())
	}
	hash, digest := sha256.New(), md5.New() //nolint:gosec // the protocol has it
	size, err := io.Copy(io.MultiWriter(f, hash, digest), c.r.Body)
	kept := object{file: f.Name(), size: size, etag: hex.EncodeToString(digest.Sum(nil)), kind: c.r.Header.Get("Content-Type"), at: time.Now()}
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(kept.file)
		panic(http.ErrAbortHandler)
	}
	want := c.r.Header.Get("Content-Md5")
	switch {
	case c.hash != "" && hex.EncodeToString(hash.Sum(nil)) != c.hash:
		_ = os.Remove(kept.file)
		return object{}, refuse(http.StatusBadRequest, "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed")
	case want != "" && base64.StdEncoding.EncodeToString(digest.Sum(nil)) != want:
		_ = os.Remove(kept.file)
		return object{}, refuse(http.StatusBadRequest, "BadDigest", "The Content-MD5 you specified did not match what we received")
	}
	return kept, nil
}

func (c *call) putObject() *fault {
	kept, e := c.receive()
	if e != nil {
		return e
	}
	c.s.store(c.bucket, c.key, kept)
	c.w.Header().Set("Etag", `"`+kept.etag+`"`)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// store puts an object below a key. Who reads the old one goes on reading it.
func (s *Server) store(bucket, key string, kept object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.objects[bucket][key]; ok {
		_ = os.Remove(old.file) // it is unused
	}
	s.objects[bucket][key] = kept
}

// getObject answers GetObject and HeadObject.
func (c *call) getObject() *fault {
	c.s.mu.Lock()
	kept, ok := c.s.objects[c.bucket][c.key]
	var f *os.File
	var err error
	if ok {
		f, err = os.Open(kept.file) // before it can be replaced
	}
	c.s.mu.Unlock()
	if !ok {
		return refuse(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	}
	if err != nil {
		return refuse(http.StatusInternalServerError, "InternalError", err.Error())
	}
	defer func() { _ = f.Close() }() // only read from
	if match := c.r.Header.Get("If-Match"); match != "" && strings.Trim(match, `"`) != kept.etag {
		return refuse(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	}
	if from, ok := strings.CutPrefix(c.r.Header.Get("Range"), "bytes="); ok {
		from, _, _ = strings.Cut(from, "-")
		if n, err := strconv.ParseInt(from, 10, 64); err == nil && n >= kept.size {
			return refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable")
		}
	}
	c.w.Header().Set("Etag", `"`+kept.etag+`"`)
	c.w.Header().Set("Content-Type", kept.kind)
	http.ServeContent(c.w, c.r, "", kept.at, f)
	return nil
}

func (c *call) deleteObject() *fault {
	c.s.remove(c.bucket, c.key)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) remove(bucket, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.objects[bucket][key]; ok {
		_ = os.Remove(old.file) // it is unused
		delete(s.objects[bucket], key)
	}
}

func (c *call) deleteObjects() *fault {
	var asked struct {
		XMLName xml.Name `xml:"Delete"`
		Quiet   bool
		Object  []struct{ Key string }
	}
	if c.r.Header.Get("Content-Md5") == "" {
		return refuse(http.StatusBadRequest, "InvalidRequest", "Missing required header for this request: Content-MD5")
	}
	if e := c.document(&asked); e != nil {
		return e
	}
	if len(asked.Object) == 0 || len(asked.Object) > maxPage {
		return refuse(http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed or did not validate")
	}
	type deleted struct{ Key string }
	var done struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
		Deleted []deleted
	}
	for _, o := range asked.Object {
		c.s.remove(c.bucket, o.Key)
		if !asked.Quiet {
			done.Deleted = append(done.Deleted, deleted{o.Key})
		}
	}
	c.xml(http.StatusOK, done)
	return nil
}

// document reads the body of a call as XML.
func (c *call) document(v any) *fault {
	if c.r.ContentLength > maxDocument {
		return refuse(http.StatusBadRequest, "MaxMessageLengthExceeded", "Your request was too big")
	}
	kept, e := c.receive()
	if e != nil {
		return e
	}
	b, err := os.ReadFile(kept.file)
	_ = os.Remove(kept.file) // it was only passing
	if err != nil {
		return refuse(http.StatusInternalServerError, "InternalError", err.Error())
	}
	if xml.Unmarshal(b, v) != nil {
		return refuse(http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed or did not validate")
	}
	return nil
}

// A listed object is one of a page.
type listed struct {
	Key          string
	LastModified string
	ETag         string
	Size         int64
	StorageClass string
}

type listPage struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name, Prefix          string
	KeyCount, MaxKeys     int
	EncodingType          string `xml:",omitempty"`
	IsTruncated           bool
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	Contents              []listed
}

// listObjects answers with a page of keys in order. The token of the next page
// is the last key of this one.
func (c *call) listObjects() *fault {
	q := c.r.URL.Query()
	if q.Get("delimiter") != "" {
		return refuse(http.StatusNotImplemented, "NotImplemented", "Delimiters are not emulated")
	}
	most := c.s.cfg.Page
	if text := q.Get("max-keys"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return refuse(http.StatusBadRequest, "InvalidArgument", "Provided max-keys not an integer or within integer range")
		}
		most = min(most, n)
	}
	after := q.Get("start-after")
	if token := q.Get("continuation-token"); token != "" {
		b, err := base64.StdEncoding.DecodeString(token)
		if err != nil {
			return refuse(http.StatusBadRequest, "InvalidArgument", "The continuation token provided is incorrect")
		}
		after = string(b)
	}
	page := listPage{Name: c.bucket, Prefix: q.Get("prefix"), MaxKeys: most, EncodingType: q.Get("encoding-type"), ContinuationToken: q.Get("continuation-token")}
	shown := func(key string) string {
		if page.EncodingType == "url" {
			return strings.ReplaceAll(url.QueryEscape(key), "%2F", "/")
		}
		return key
	}
	keys := c.s.Keys(c.bucket)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key <= after || !strings.HasPrefix(key, page.Prefix) })
	if page.IsTruncated = len(keys) > most; page.IsTruncated {
		keys = keys[:most]
		if most > 0 {
			page.NextContinuationToken = base64.StdEncoding.EncodeToString([]byte(keys[most-1]))
		}
	}
	c.s.mu.Lock()
	for _, key := range keys {
		if o, ok := c.s.objects[c.bucket][key]; ok {
			page.Contents = append(page.Contents, listed{shown(key), o.at.UTC().Format("2006-01-02T15:04:05.000Z"), `"` + o.etag + `"`, o.size, "STANDARD"})
		}
	}
	c.s.mu.Unlock()
	page.KeyCount, page.Prefix = len(page.Contents), shown(page.Prefix)
	c.xml(http.StatusOK, page)
	return nil
}
