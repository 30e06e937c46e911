package configs

import (
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot/lazyregexp"
)

// DefaultInline is the default of Files.MaxInline, in bytes.
const DefaultInline = 20 << 20

// The values of Files.Addressing.
const (
	AddressingPath = "path" // https://endpoint/bucket/key
	AddressingHost = "host" // https://bucket.endpoint/key
)

// Files is where the bytes of files are that people and agents send, where
// PostgreSQL keeps everything else. The zero Bucket means PostgreSQL, too.
type Files struct {
	// Bucket is one of a store that speaks the protocol of Amazon S3.
	Bucket     string `key:"url" kind:"files address" env:"CLAYBOT_FILES_URL"`
	Prefix     string // before the names of all files; empty, or ends with a slash
	Endpoint   string // with scheme, without a path; empty: that of Amazon
	Region     string // empty: whatever the store takes by default
	Addressing string // AddressingPath, AddressingHost, or empty: as the store likes it
	// The key of the store, from the environment or from files, never from
	// addresses.
	AccessKey    Secret `key:"access_key"`
	SecretKey    Secret `key:"secret_key"`
	SessionToken Secret `key:"session_token"`
	// MaxInline is the size of the largest file that PostgreSQL keeps itself.
	MaxInline int64 `key:"max_inline" class:"harmless" kind:"size" limits:"1..256m"`
	// Fault says what is wrong with an address that was given. No file may be kept
	// elsewhere then: it would not be found again once the address is right.
	Fault string
	// keyFault is that of a key of the file; a key of the environment leaves none.
	keyFault string
}

// Wanted reports whether files are to be in a store of their own, even if its
// address cannot be used.
func (f Files) Wanted() bool { return f.Bucket != "" || f.Fault != "" }

// setFiles reads an address alone, or the group of keys.
func setFiles(r *reader, at place, n *yaml.Node, f *Files) {
	if n.Kind == yaml.ScalarNode {
		readFilesURL(r, at, strings.TrimSpace(n.Value), f)
		return
	}
	before := len(r.warnings)
	r.group(at, n, f)
	key := at.sub("url", 0).key
	for i := range r.warnings[before:] {
		w := &r.warnings[before+i]
		text, ok := ignored(*w)
		switch {
		case n.Kind != yaml.MappingNode || ok && (w.Key == key || w.Near == key || bucketed(text, w.Key)): // an address was meant
			f.Fault, w.path = w.Key+": "+text, "files.url"
		case ok && account(w.Key):
			f.keyFault, w.path = w.Key+": "+text, w.Key
		default:
			continue
		}
		w.Text, w.Off = text+noFile, true
	}
}

// bucketed reports whether a key that is not read, and why, may say where files are.
func bucketed(why, key string) bool {
	name := lastName(key)
	return why == unreadMerge || strings.HasPrefix(why, unreadUnknown) && !account(key) && (addressed.MatchString(name) || strings.Contains(name, "bucket"))
}

// noFile ends a warning about the address.
const noFile = "; no file can be kept until it is mended"

// readFilesURL reads s3://bucket/prefix?endpoint=https://host&region=name&path_style=true.
// Nothing of an address is repeated in a warning: it may hold a key.
func readFilesURL(r *reader, at place, v string, f *Files) {
	f.Bucket, f.Prefix, f.Endpoint, f.Region, f.Addressing, f.Fault = "", "", "", "", "", ""
	if v == "" {
		return
	}
	next := *f
	if fault := next.parse(v); fault != "" {
		f.Fault = at.key + ": " + fault
		r.warn(at, "%s"+noFile, fault)
		w := &r.warnings[len(r.warnings)-1]
		w.Off, w.path = true, "files.url"
		return
	}
	*f = next
}

var (
	bucketForm = lazyregexp.New(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixForm = lazyregexp.New(`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`)
	regionForm = lazyregexp.New(`^[a-z0-9-]{1,40}$`)
)

const filesExample = "such as s3://bucket/prefix?endpoint=https://host"

// parse reads an address, and returns what is wrong with it.
func (f *Files) parse(v string) (fault string) {
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "s3" || u.Opaque != "" || u.Fragment != "" {
		return "the value is not an address " + filesExample
	}
	if u.User != nil {
		return "an address must not hold a key; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
	}
	if f.Bucket = u.Host; !bucketForm.MatchString(f.Bucket) || strings.Contains(f.Bucket, "..") {
		return "an address wants the name of a bucket, " + filesExample
	}
	if prefix := strings.Trim(u.Path, "/"); prefix != "" {
		if len(prefix) > 200 || !prefixForm.MatchString(prefix) || slices.ContainsFunc(strings.Split(prefix, "/"), dots) {
			return "what stands before the names of files may have letters, digits, and -_. between slashes"
		}
		f.Prefix = prefix + "/"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "what follows the ? cannot be read; write name=value with & between"
	}
	for name, values := range query {
		if len(values) > 1 {
			return "what follows the ? says something twice"
		}
		if fault := f.parameter(name, values[0]); fault != "" {
			return fault
		}
	}
	return ""
}

func dots(segment string) bool { return segment == "." || segment == ".." }

// parameter reads one of the values behind the question mark.
func (f *Files) parameter(name, value string) (fault string) {
	switch name {
	case "endpoint":
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
			strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return "the endpoint is not an address such as https://host, without a path or a key"
		}
		f.Endpoint = u.Scheme + "://" + u.Host
	case "region":
		if f.Region = value; !regionForm.MatchString(value) {
			return "the region is not a name such as eu-central-1"
		}
	case "path_style":
		yes, ok := parseTruth(value)
		if !ok {
			return "path_style is not one of true, false"
		}
		f.Addressing = AddressingHost
		if yes {
			f.Addressing = AddressingPath
		}
	default:
		return "behind the ? there may be endpoint, region and path_style only; a key never"
	}
	return ""
}
