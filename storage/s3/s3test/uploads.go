package s3test

import (
	"crypto/md5" //nolint:gosec // the protocol has it
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// An upload is an object in the making.
type upload struct {
	bucket, key, kind string
	parts             map[int]object
}

func (c *call) createUpload() *fault {
	id := rand.Text()
	c.s.mu.Lock()
	c.s.uploads[id] = &upload{c.bucket, c.key, c.r.Header.Get("Content-Type"), make(map[int]object)}
	c.s.mu.Unlock()
	c.xml(http.StatusOK, struct {
		XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
		Bucket   string
		Key      string
		UploadID string `xml:"UploadId"`
	}{Bucket: c.bucket, Key: c.key, UploadID: id})
	return nil
}

// upload finds the upload of a call. It needs the lock.
func (c *call) upload() *upload {
	u := c.s.uploads[c.r.URL.Query().Get("uploadId")]
	if u == nil || u.bucket != c.bucket || u.key != c.key {
		return nil
	}
	return u
}

func (c *call) uploadPart() *fault {
	number, err := strconv.Atoi(c.r.URL.Query().Get("partNumber"))
	if err != nil || number < 1 || number > maxPart {
		return refuse(http.StatusBadRequest, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
	}
	kept, e := c.receive()
	if e != nil {
		return e
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	u := c.upload()
	if u == nil {
		_ = os.Remove(kept.file) // it is unused
		return noUpload()
	}
	if old, ok := u.parts[number]; ok {
		_ = os.Remove(old.file) // it is unused
	}
	u.parts[number] = kept
	c.w.Header().Set("Etag", `"`+kept.etag+`"`)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

func noUpload() *fault {
	return refuse(http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist")
}

// asked is the list of parts that make an object.
type asked struct {
	XMLName xml.Name `xml:"CompleteMultipartUpload"`
	Part    []struct {
		PartNumber int
		ETag       string
	}
}

func (c *call) completeUpload() *fault {
	var list asked
	if e := c.document(&list); e != nil {
		return e
	}
	c.s.mu.Lock()
	u := c.upload()
	var parts []object
	e := noUpload()
	if u != nil {
		if parts, e = u.chosen(list, c.s.cfg.MinPart); e == nil {
			delete(c.s.uploads, c.r.URL.Query().Get("uploadId"))
		}
	}
	c.s.mu.Unlock()
	if e != nil {
		return e
	}
	whole, err := c.s.join(parts)
	if err != nil {
		return refuse(http.StatusInternalServerError, "InternalError", err.Error())
	}
	whole.kind = u.kind
	for _, p := range u.parts {
		_ = os.Remove(p.file) // it is in the whole now, or was not wanted
	}
	c.s.store(c.bucket, c.key, whole)
	c.xml(http.StatusOK, struct {
		XMLName           xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
		Bucket, Key, ETag string
	}{Bucket: c.bucket, Key: c.key, ETag: `"` + whole.etag + `"`})
	return nil
}

// chosen are the parts of a list, if it is in order, and they
// are there and large enough.
func (u *upload) chosen(list asked, least int64) ([]object, *fault) {
	if len(list.Part) == 0 {
		return nil, refuse(http.StatusBadRequest, "MalformedXML", "The XML you provided was not well-formed or did not validate")
	}
	for i, p := range list.Part[1:] {
		if p.PartNumber <= list.Part[i].PartNumber {
			return nil, refuse(http.StatusBadRequest, "InvalidPartOrder", "The list of parts was not in ascending order")
		}
	}
	var parts []object
	for i, p := range list.Part {
		kept, ok := u.parts[p.PartNumber]
		switch {
		case !ok || strings.Trim(p.ETag, `"`) != kept.etag:
			return nil, refuse(http.StatusBadRequest, "InvalidPart", "One or more of the specified parts could not be found")
		case i < len(list.Part)-1 && kept.size < least:
			return nil, refuse(http.StatusBadRequest, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
		}
		parts = append(parts, kept)
	}
	return parts, nil
}

// join writes parts one after the other into a file.
func (s *Server) join(parts []object) (object, error) {
	f, err := s.create()
	if err != nil {
		return object{}, err
	}
	whole := object{file: f.Name(), at: time.Now()}
	sums := md5.New() //nolint:gosec // the protocol has it
	for _, p := range parts {
		part, openErr := os.Open(p.file)
		if openErr != nil {
			err = openErr
			break
		}
		var n int64
		n, err = io.Copy(f, part)
		_ = part.Close() // only read from
		if err != nil {
			break
		}
		whole.size += n
		sum, _ := hex.DecodeString(p.etag) // receive wrote it
		sums.Write(sum)
	}
	whole.etag = hex.EncodeToString(sums.Sum(nil)) + "-" + strconv.Itoa(len(parts))
	return whole, errors.Join(err, f.Close())
}

func (c *call) abortUpload() *fault {
	c.s.mu.Lock()
	u := c.upload()
	if u != nil {
		delete(c.s.uploads, c.r.URL.Query().Get("uploadId"))
	}
	c.s.mu.Unlock()
	if u == nil {
		return noUpload()
	}
	for _, p := range u.parts {
		_ = os.Remove(p.file) // it is unused
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
