package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	engineimage "github.com/docker/docker/api/types/image"

	"github.com/claybot/claybot/workspace"
)

type image struct {
	id       string
	platform string   // os/architecture
	volumes  []string // that it declares
}

// image makes an image present. With a platform it is pulled for that, even when
// it is there already; without one, only when it is missing.
func (e *engine) image(ctx context.Context, name, platform string) (image, error) {
	if platform == "" {
		img, err := e.inspect(ctx, name)
		if err == nil || !errdefs.IsNotFound(err) {
			return img, e.imageFault(ctx, name, platform, err)
		}
	}
	if err := e.pull(ctx, name, platform); err != nil {
		return image{}, e.imageFault(ctx, name, platform, err)
	}
	img, err := e.inspect(ctx, name)
	if err != nil {
		return img, e.imageFault(ctx, name, platform, err)
	}
	if platform != "" && img.platform != platform {
		return img, refused("the image %s is for %s, not for %s; choose another platform or image", name, img.platform, platform)
	}
	return img, nil
}

func (e *engine) inspect(ctx context.Context, name string) (image, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := e.api.ImageInspect(ctx, name)
	if err != nil {
		return image{}, err
	}
	img := image{id: found.ID, platform: found.Os + "/" + found.Architecture}
	if found.Config != nil {
		for _, p := range slices.Sorted(maps.Keys(found.Config.Volumes)) {
			if path.IsAbs(p) {
				img.volumes = append(img.volumes, path.Clean(p))
			}
		}
	}
	return img, nil
}

// pull fetches an image. The engine answers 200 before it begins; whether it was
// got is only known at the end of the stream.
func (e *engine) pull(ctx context.Context, name, platform string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	stream, err := e.api.ImagePull(ctx, name, engineimage.PullOptions{Platform: platform})
	if err != nil {
		return err
	}
	defer stream.Close()
	return pulled(stream)
}

func pulled(stream io.Reader) error {
	d := json.NewDecoder(stream)
	for {
		var line struct {
			Error       string `json:"error"`
			ErrorDetail struct {
				Message string `json:"message"`
			} `json:"errorDetail"`
		}
		switch err := d.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the progress: %w", err)
		case line.ErrorDetail.Message != "":
			return errors.New(line.ErrorDetail.Message)
		case line.Error != "":
			return errors.New(line.Error)
		}
	}
}

func (e *engine) imageFault(ctx context.Context, name, platform string, err error) error {
	if err == nil {
		return nil
	}
	fault := func(code workspace.Code, format string, args ...any) error {
		return &workspace.Error{Code: code, Text: fmt.Sprintf(format, args...), Err: fmt.Errorf("docker: pull %s: %w", name, err)}
	}
	text := strings.ToLower(err.Error())
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case has("no matching manifest", "does not match the specified platform", "does not provide the specified platform"):
		if platform == "" {
			platform = "this machine's platform"
		}
		return fault(workspace.Refused, "the image %s is not there for %s; choose another platform or image", name, platform)
	case errdefs.IsNotFound(err), has("not found", "does not exist", "manifest unknown", "access denied", "unauthorized", "authentication required"):
		return fault(workspace.Unavailable, "there is no image %s, neither on this machine nor to be pulled: see its name, or log in and pull it (docker pull)", name)
	case has("no such host", "lookup ", "dial tcp", "i/o timeout", "tls handshake", "connection refused", "network is unreachable"):
		if has("docker.sock", "docker daemon") {
			break
		}
		return fault(workspace.Unavailable, "the image %s is not on this machine, and its registry cannot be reached: pull it when there is a network", name)
	case has("no space left"):
		return fault(workspace.DiskLimit, "there is no space for the image %s: remove what is not needed (docker system prune)", name)
	}
	return e.fault(ctx, "get the image "+name, err)
}
