// Package s3 stores the bytes of files in a store that implements the Amazon S3
// protocol, such as Amazon S3, MinIO, Ceph, Cloudflare R2 or Google Cloud Storage.
//
// It guarantees what storage.Blobs requires. Readers see a whole file or none: up to
// PartSize a file is one request, above that a multipart upload. The signature of every
// request covers the SHA-256 of its body, so the store rejects a body damaged in
// transit. Temporary failures are retried for a bounded time; an interrupted download
// resumes where it stopped. Memory use does not depend on the size of a file.
//
// Errors contain the operation, the key and the store's error code. They contain no
// secret, nor anything else that the store may have repeated from a request. Only cmd
// imports this package.
package s3

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/semaphore"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage"
)

// Limits of uploads.
const (
	// PartSize is how much of a file one request carries, in bytes.
	PartSize = 8 << 20
	// MaxSize is the maximum size of a file in bytes: an upload has at most 10,000 parts.
	MaxSize = 10_000 * PartSize
	// uploadMemory bounds the memory of all concurrent uploads, in bytes.
	uploadMemory = 4 * PartSize
)

// The values of Config.Addressing.
const (
	AddressingAuto = ""     // host with Amazon and Google, path elsewhere
	AddressingPath = "path" // https://endpoint/bucket/key
	AddressingHost = "host" // https://bucket.endpoint/key
)

// DefaultRegion is the region if none is configured. Most stores other than Amazon's
// accept any region or only this one.
const DefaultRegion = "us-east-1"

// Config configures a Store.
type Config struct {
	// Endpoint is the address of the store, such as https://s3.example.org, without
	// a path. Empty: that of Amazon in Region.
	Endpoint string
	Region   string // default DefaultRegion
	Bucket   string
	// Prefix is prepended to all keys; New adds a trailing slash.
	Prefix     string
	Addressing string

	AccessKey    string
	SecretKey    string
	SessionToken string // only of temporary keys

	// Patience is how long a failing request is retried. There are at least two tries, and
	// the last may start at the end. Default 30 s.
	Patience time.Duration
	// Transport sends the requests. The default has time limits for connecting and for
	// response headers.
	Transport http.RoundTripper
}

// A Store is a bucket, or the part of one below a prefix. It is safe for
// concurrent use.
type Store struct {
	core   client
	bucket string
	prefix string // empty, or ends with a slash
	host   string // of the endpoint, for messages
	region string

	patience time.Duration
	answer   time.Duration       // time limit for a response
	memory   *semaphore.Weighted // bytes of uploads
	part     int64               // size of a request in bytes
	batch    int                 // keys per delete request
}

var _ storage.Blobs = (*Store)(nil)

var bucketName = lazyregexp.New(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// New returns a Store, or an error that names a missing or invalid setting. It makes no
// request; use Check for that.
func New(cfg Config) (*Store, error) {
	if cfg.Region == "" {
		cfg.Region = DefaultRegion
	}
	if cfg.Endpoint == "" {
		cfg.Endpoint = "https://s3." + cfg.Region + ".amazonaws.com"
	}
	if cfg.Patience <= 0 {
		cfg.Patience = 30 * time.Second
	}
	if cfg.Transport == nil {
		cfg.Transport = transport()
	}
	endpoint, err := cfg.check()
	if err != nil {
		return nil, err
	}
	lookup := map[string]minio.BucketLookupType{
		AddressingPath: minio.BucketLookupPath, AddressingHost: minio.BucketLookupDNS,
	}[cfg.Addressing]
	core, err := newClient(endpoint.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, cfg.SessionToken),
		Secure:       endpoint.Scheme == "https",
		Region:       cfg.Region, // always set, so the library never queries it
		BucketLookup: lookup,
		Transport:    cfg.Transport,
		MaxRetries:   1, // try repeats
	})
	if err != nil {
		return nil, errors.New("the address of the file store cannot be used: write endpoint as https://host")
	}
	prefix := cfg.Prefix
	if prefix != "" && !strings.HasSuffix(prefix, "/") {
		prefix += "/"
	}
	return &Store{
		core: core, bucket: cfg.Bucket, prefix: prefix, host: endpoint.Host, region: cfg.Region,
		patience: cfg.Patience, answer: answerTime, memory: semaphore.NewWeighted(uploadMemory), part: PartSize, batch: deleteBatch,
	}, nil
}

// check rejects invalid settings.
func (c Config) check() (*url.URL, error) {
	switch u, err := url.Parse(c.Endpoint); {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the address of the file store cannot be used: write endpoint as https://host, without a path or a key")
	case !bucketName.MatchString(c.Bucket) || strings.Contains(c.Bucket, ".."):
		return nil, fmt.Errorf("%.80q is not the name of a bucket: name one of 3 to 63 letters a-z, digits, dots and hyphens", c.Bucket)
	case c.Prefix != "" && storage.CheckBlobPrefix(c.Prefix) != nil:
		return nil, fmt.Errorf("%.80q cannot stand before the keys of files: use letters, digits and -_./", c.Prefix)
	case c.Addressing != AddressingAuto && c.Addressing != AddressingPath && c.Addressing != AddressingHost:
		return nil, fmt.Errorf("invalid bucket addressing %.80q: use path, host or none", c.Addressing)
	case c.AccessKey == "":
		return nil, errors.New("the file store needs a key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case c.SecretKey == "":
		return nil, errors.New("the key of the file store has no secret: set AWS_SECRET_ACCESS_KEY")
	default:
		return u, nil
	}
}

// transport returns an HTTP transport without compression, which would hide the size of
// files, and with limits for the waits that a context may not end.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout:       90 * time.Second,
		MaxIdleConnsPerHost:   16,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
	}
}
