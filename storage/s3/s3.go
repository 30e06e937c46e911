// Package s3 keeps the bytes of files in a store that speaks the protocol of
// Amazon S3: that of Amazon, or MinIO, Ceph, Cloudflare R2, Google Cloud Storage
// and others.
//
// It guarantees what storage.Blobs says. A file is seen whole or not at all: up
// to PartSize it is one request, above that an upload in parts which the store
// shows when all of them are there. Every request carries the SHA-256 of its
// body below its signature, so bytes that were damaged on the way are refused.
// Requests that fail for a reason that passes are repeated, for a bounded time;
// a download that was cut goes on where it stopped. Memory does not grow with
// the size of a file.
//
// Errors name the operation, the key and the store's word for what is wrong.
// They hold no secret, nor anything else that the store may have repeated from a
// request. Only cmd imports this package.
package s3

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"golang.org/x/sync/semaphore"

	"github.com/claybot/claybot/storage"
)

// The bounds of uploads.
const (
	// PartSize is how much of a file one request carries, in bytes.
	PartSize = 8 << 20
	// MaxSize is the size of the largest file, in bytes: an upload has at most
	// 10,000 parts.
	MaxSize = 10_000 * PartSize
	// uploadMemory is what all uploads at a time hold in memory, in bytes.
	uploadMemory = 4 * PartSize
)

// The values of Config.Addressing.
const (
	AddressingAuto = ""     // host with Amazon and Google, path elsewhere
	AddressingPath = "path" // https://endpoint/bucket/key
	AddressingHost = "host" // https://bucket.endpoint/key
)

// DefaultRegion is the region where none is named. Most stores that are not
// Amazon's know no other one, or take any.
const DefaultRegion = "us-east-1"

// Config says where the store is and who asks.
type Config struct {
	// Endpoint is the address of the store, such as https://s3.example.org, without
	// a path. Empty: that of Amazon in Region.
	Endpoint string
	Region   string // default DefaultRegion
	Bucket   string
	// Prefix stands before all keys, with a slash between if it has none.
	Prefix     string
	Addressing string

	AccessKey    string
	SecretKey    string
	SessionToken string // only of temporary keys

	// Patience is for how long a request that fails is repeated; the last try may
	// begin at its end, and there are two at least. Default 30 s.
	Patience time.Duration
	// Transport carries the requests. Default: one of its own, with time limits for
	// connecting and for the begin of an answer.
	Transport http.RoundTripper
}

// A Store is a bucket, or the part of one below a prefix. It is safe for
// concurrent use.
type Store struct {
	core   *minio.Core
	bucket string
	prefix string // empty, or ends with a slash
	host   string // of the endpoint, for messages
	region string

	patience time.Duration
	answer   time.Duration       // for which an answer is waited
	memory   *semaphore.Weighted // bytes of uploads
	part     int64               // bytes that one request carries
	batch    int                 // keys that are deleted at a time
}

var _ storage.Blobs = (*Store)(nil)

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// New returns a Store, or an error that says in one sentence which setting is
// missing or wrong. It makes no request; Check does.
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
	core, err := minio.NewCore(endpoint.Host, &minio.Options{
		Creds:        credentials.NewStaticV4(cfg.AccessKey, cfg.SecretKey, cfg.SessionToken),
		Secure:       endpoint.Scheme == "https",
		Region:       cfg.Region, // always there, so that the library never asks for it
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

// check finds settings that cannot be right.
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
		return nil, fmt.Errorf("%.80q is no way to address a bucket: use path, host, or none", c.Addressing)
	case c.AccessKey == "":
		return nil, errors.New("the file store needs a key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case c.SecretKey == "":
		return nil, errors.New("the key of the file store has no secret: set AWS_SECRET_ACCESS_KEY")
	default:
		return u, nil
	}
}

// transport is that of net/http without compression, which would hide the size
// of files, and with limits for every wait that a context may not end.
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
