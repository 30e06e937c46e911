package s3test

import (
	"encoding/xml"
	"io"
	"net/http"
	"strconv"
)

// A call is one request on its way.
type call struct {
	s           *Server
	w           http.ResponseWriter
	r           *http.Request
	operation   string
	bucket, key string
	hash        string // that the body must have, in hex; empty: any
}

// operation names what a request asks for; empty when that is not emulated.
func operation(r *http.Request, key string) string {
	q := r.URL.Query()
	upload := q.Has("uploadId")
	switch {
	case key == "" && r.Method == http.MethodGet && q.Get("list-type") == "2":
		return "ListObjectsV2"
	case key == "" && r.Method == http.MethodPost && q.Has("delete"):
		return "DeleteObjects"
	case key == "":
		return ""
	case r.Method == http.MethodPost && q.Has("uploads"):
		return "CreateMultipartUpload"
	case r.Method == http.MethodPost && upload:
		return "CompleteMultipartUpload"
	case r.Method == http.MethodPut && upload && q.Has("partNumber"):
		return "UploadPart"
	case r.Method == http.MethodDelete && upload:
		return "AbortMultipartUpload"
	}
	for name := range q {
		if name != "x-id" { // some clients name the operation
			return ""
		}
	}
	if r.Header.Get("X-Amz-Copy-Source") != "" {
		return ""
	}
	return map[string]string{
		http.MethodPut: "PutObject", http.MethodGet: "GetObject", http.MethodHead: "HeadObject", http.MethodDelete: "DeleteObject",
	}[r.Method]
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		panic(http.ErrAbortHandler)
	}
	defer s.working.Done()
	c := &call{s: s, w: w, r: r}
	c.bucket, c.key = s.place(r)
	c.operation = operation(r, c.key)
	f := s.begin(c.operation)
	if f != nil && f.before(c) {
		return
	}
	if f != nil {
		c.w = f.wrap(c)
	}
	if e := c.answer(); e != nil {
		e.write(c)
	}
	if f != nil && f.Lost {
		panic(http.ErrAbortHandler)
	}
}

// answer does what is asked for, or returns why not.
func (c *call) answer() *fault {
	if e := c.authenticate(); e != nil {
		return e
	}
	do, ok := map[string]func(*call) *fault{
		"PutObject": (*call).putObject, "GetObject": (*call).getObject, "HeadObject": (*call).getObject,
		"DeleteObject": (*call).deleteObject, "DeleteObjects": (*call).deleteObjects, "ListObjectsV2": (*call).listObjects,
		"CreateMultipartUpload": (*call).createUpload, "UploadPart": (*call).uploadPart,
		"CompleteMultipartUpload": (*call).completeUpload, "AbortMultipartUpload": (*call).abortUpload,
	}[c.operation]
	if !ok {
		return refuse(http.StatusNotImplemented, "NotImplemented", "A header you provided implies functionality that is not implemented")
	}
	c.s.mu.Lock()
	_, found := c.s.objects[c.bucket]
	denied := c.s.denied[c.operation]
	c.s.mu.Unlock()
	switch {
	case !found:
		return refuse(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
	case denied:
		return refuse(http.StatusForbidden, "AccessDenied", "Access Denied")
	case len(c.key) > maxKey:
		return refuse(http.StatusBadRequest, "KeyTooLongError", "Your key is too long")
	}
	return do(c)
}

// The limits of S3.
const (
	maxKey      = 1024
	maxPage     = 1000
	maxBody     = 5 << 30
	maxDocument = 2 << 20 // of XML
	minPart     = 5 << 20
	maxPart     = 10_000
)

// A fault is an error of S3.
type fault struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	Region  string `xml:",omitempty"`
	Key     string `xml:",omitempty"`
	// RequestID is made up.
	RequestID string `xml:"RequestId"`

	status int
}

func refuse(status int, code, message string) *fault {
	return &fault{status: status, Code: code, Message: message, RequestID: "TEST0000REQUEST0"}
}

// write answers with the error. The rest of a body is read, because a client
// that is still sending would see a cut connection instead.
func (f *fault) write(c *call) {
	_, _ = io.CopyN(io.Discard, c.r.Body, 16<<20) // whatever there is
	f.Key = c.key
	if f.Region != "" {
		c.w.Header().Set("X-Amz-Bucket-Region", f.Region)
	}
	if c.r.Method == http.MethodHead {
		c.w.WriteHeader(f.status)
		return
	}
	c.xml(f.status, f)
}

// xml answers with a document.
func (c *call) xml(status int, v any) {
	b, err := xml.Marshal(v)
	if err != nil {
		panic(err) // only with types of this package
	}
	b = append([]byte(xml.Header), b...)
	c.w.Header().Set("Content-Type", "application/xml")
	c.w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(b) // a client that went away gets nothing
}
