package docker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	engineimage "github.com/docker/docker/api/types/image"
)

// A registry serves one image for two platforms, by HTTP on the loopback, which
// engines trust. It counts the pulls.
type registry struct {
	name  string // of the image
	pulls atomic.Int64

	mux   *http.ServeMux
	blobs map[string][]byte
}

const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	listType     = "application/vnd.docker.distribution.manifest.list.v2+json"
)

type descriptor struct {
	MediaType string            `json:"mediaType"`
	Size      int               `json:"size"`
	Digest    string            `json:"digest"`
	Platform  map[string]string `json:"platform,omitempty"`
}

// newRegistry serves the test image. The programs of both platforms are the same,
// so that both run here.
func newRegistry(t *testing.T) *registry {
	t.Helper()
	provider(t) // skips the test where there is no engine
	r := &registry{mux: http.NewServeMux(), blobs: make(map[string][]byte)}
	layer := imageLayer(t)
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed)
	if _, err := z.Write(layer); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	layers := []descriptor{r.blob("application/vnd.docker.image.rootfs.diff.tar.gzip", zipped.Bytes())}
	var list []descriptor
	for _, arch := range []string{"amd64", "arm64"} {
		config := r.blob("application/vnd.docker.container.image.v1+json", asJSON(t, map[string]any{
			"os": "linux", "architecture": arch, "config": map[string]any{"Env": []string{"PATH=/bin"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
		}))
		m := r.blob(manifestType, asJSON(t, map[string]any{
			"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": layers,
		}))
		m.Platform = map[string]string{"os": "linux", "architecture": arch}
		list = append(list, m)
	}
	both := r.blob(listType, asJSON(t, map[string]any{"schemaVersion": 2, "mediaType": listType, "manifests": list}))
	one := r.blob(listType, asJSON(t, map[string]any{"schemaVersion": 2, "mediaType": listType, "manifests": list[:1]}))
	r.blobs["both"], r.blobs["one"] = r.blobs[both.Digest], r.blobs[one.Digest]
	r.mux.HandleFunc("/v2/", r.serve)
	server := httptest.NewServer(r.mux)
	t.Cleanup(server.Close)
	r.name = strings.TrimPrefix(server.URL, "http://") + "/claybot/test:both"
	c := raw(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, name := range []string{r.name, r.forOne()} {
			_, _ = c.ImageRemove(ctx, name, engineimage.RemoveOptions{Force: true, PruneChildren: true})
		}
	})
	return r
}

// forOne is the image that is there for amd64 alone.
func (r *registry) forOne() string { return strings.TrimSuffix(r.name, "both") + "one" }

func (r *registry) blob(kind string, b []byte) descriptor {
	d := digest(b)
	r.blobs[d] = b
	return descriptor{MediaType: kind, Size: len(b), Digest: d}
}

func (r *registry) serve(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(req.URL.Path, "/")
	ref := parts[len(parts)-1]
	b, ok := r.blobs[ref]
	switch {
	case req.URL.Path == "/v2/":
		return
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}`)
		return
	case strings.Contains(req.URL.Path, "/manifests/"):
		var m struct{ MediaType string }
		_ = json.Unmarshal(b, &m)
		w.Header().Set("Content-Type", m.MediaType)
		w.Header().Set("Docker-Content-Digest", digest(b))
		if !strings.HasPrefix(ref, "sha256:") { // a pull looks at the name first
			r.pulls.Add(1)
		}
	}
	http.ServeContent(w, req, "", timeZero, bytes.NewReader(b))
}

func digest(b []byte) string {
	h := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(h[:])
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// imageLayer is the file system of the test image, as an archive.
func imageLayer(t *testing.T) []byte {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the image is for Linux")
	}
	saved, err := raw(t).ImageSave(t.Context(), []string{testImage})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	for a := tar.NewReader(saved); ; {
		h, err := a.Next()
		if err != nil {
			t.Fatalf("the image has no layer: %v", err)
		}
		// Older engines call it layer.tar, newer ones by its digest.
		if h.Typeflag != tar.TypeReg || h.Size < 512<<10 {
			continue
		}
		b, err := io.ReadAll(a)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
}
