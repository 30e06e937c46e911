package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/claybot/claybot/storage"
)

// abortTime bounds the abort of an upload.
const abortTime = 10 * time.Second

// Put implements storage.Blobs. If content is shorter or longer than size, it returns
// an error and stores nothing. It reads content once and keeps a part in memory to
// retry it.
func (s *Store) Put(ctx context.Context, key string, content io.Reader, size int64) error {
	if err := storage.CheckBlobKey(key); err != nil {
		return fmt.Errorf("put file: %w", err)
	}
	if err := s.put(ctx, key, content, size); err != nil {
		return fmt.Errorf("put file %.80q: %w", key, err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, key string, content io.Reader, size int64) error {
	if size < 0 || size > MaxSize {
		return fmt.Errorf("%d bytes are not from 0 to %d", size, int64(MaxSize))
	}
	held := min(size, s.part)
	if err := s.memory.Acquire(ctx, held); err != nil {
		return context.Cause(ctx)
	}
	defer s.memory.Release(held)
	buffer := make([]byte, held)
	if size > s.part {
		return s.putParts(ctx, key, content, size, buffer)
	}
	if err := fill(buffer, content, true); err != nil {
		return err
	}
	opts := minio.PutObjectOptions{ContentType: contentType, DisableContentSha256: true}
	return s.try(ctx, size, func(ctx context.Context) error {
		_, err := s.core.PutObject(ctx, s.bucket, s.prefix+key, bytes.NewReader(buffer), size, "", sum(buffer), opts)
		return err
	})
}

// contentType is that of all files: claybot knows their types, and a bucket that is
// public by mistake must not serve web pages.
const contentType = "application/octet-stream"

// putParts uploads several parts. The file is not visible before the last.
func (s *Store) putParts(ctx context.Context, key string, content io.Reader, size int64, buffer []byte) (err error) {
	name, id := s.prefix+key, ""
	err = s.try(ctx, 0, func(ctx context.Context) (err error) {
		id, err = s.core.NewMultipartUpload(ctx, s.bucket, name, minio.PutObjectOptions{ContentType: contentType})
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		// Incomplete parts are invisible but cost money. Abort them even if ctx has ended; err
		// already reports that nothing was stored.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
		defer cancel()
		_ = s.try(ctx, 0, func(ctx context.Context) error {
			return s.core.AbortMultipartUpload(ctx, s.bucket, name, id)
		})
	}()
	var parts []minio.CompletePart
	for sent := int64(0); sent < size; sent += int64(len(buffer)) {
		buffer = buffer[:min(size-sent, s.part)]
		if err := fill(buffer, content, sent+int64(len(buffer)) == size); err != nil {
			return err
		}
		part, err := s.putPart(ctx, name, id, len(parts)+1, buffer)
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	return s.complete(ctx, name, id, parts, size)
}

func (s *Store) putPart(ctx context.Context, name, id string, number int, buffer []byte) (part minio.CompletePart, err error) {
	size := int64(len(buffer))
	opts := minio.PutObjectPartOptions{Sha256Hex: sum(buffer), DisableContentSha256: true}
	err = s.try(ctx, size, func(ctx context.Context) error {
		p, err := s.core.PutObjectPart(ctx, s.bucket, name, id, number, bytes.NewReader(buffer), size, opts)
		part = minio.CompletePart{PartNumber: number, ETag: p.ETag}
		return err
	})
	return part, err
}

// complete turns the parts into a file. If the response to an earlier try was lost, the
// upload no longer exists and the file does.
func (s *Store) complete(ctx context.Context, name, id string, parts []minio.CompletePart, size int64) error {
	again := false
	return s.try(ctx, 0, func(ctx context.Context) error {
		_, err := s.core.CompleteMultipartUpload(ctx, s.bucket, name, id, parts, minio.PutObjectOptions{})
		if r, ok := errors.AsType[*refusal](s.fault(err)); ok && again && r.code == minio.NoSuchUpload {
			info, found := s.core.StatObject(ctx, s.bucket, name, minio.StatObjectOptions{})
			if found == nil && info.Size == size {
				return nil
			}
		}
		again = true
		return err
	})
}

// fill reads a part; for the last one it checks that content ends there.
func fill(buffer []byte, content io.Reader, last bool) error {
	if _, err := io.ReadFull(content, buffer); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("the content is shorter than was said: %w", io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("read the content: %w", err)
	}
	if !last {
		return nil
	}
	switch n, err := io.ReadFull(content, make([]byte, 1)); {
	case n > 0:
		return errors.New("the content is longer than was said")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("read the content: %w", err)
	}
	return nil
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// deleteBatch is the limit of S3 for keys in one delete request.
const deleteBatch = 1000

// Delete implements storage.Blobs. It deletes keys in order, so a key that is put
// concurrently may remain. A failed Delete may be repeated.
func (s *Store) Delete(ctx context.Context, prefix string) error {
	if err := storage.CheckBlobPrefix(prefix); err != nil {
		return fmt.Errorf("delete files: %w", err)
	}
	if err := s.delete(ctx, prefix); err != nil {
		return fmt.Errorf("delete files %.80q: %w", prefix, err)
	}
	return nil
}

func (s *Store) delete(ctx context.Context, prefix string) error {
	for after := ""; ; {
		keys, err := s.list(ctx, prefix, after)
		if err != nil || len(keys) == 0 {
			return err
		}
		if err := s.remove(ctx, keys); err != nil {
			return err
		}
		if len(keys) < s.batch {
			return nil
		}
		after = keys[len(keys)-1]
	}
}

// list returns the first keys of the bucket that begin with a prefix, in order,
// at most a batch.
func (s *Store) list(ctx context.Context, prefix, after string) (keys []string, err error) {
	opts := minio.ListObjectsOptions{Prefix: s.prefix + prefix, Recursive: true, StartAfter: after, MaxKeys: s.batch}
	err = s.try(ctx, 0, func(ctx context.Context) error {
		keys = keys[:0]
		for object := range s.core.ListObjectsIter(ctx, s.bucket, opts) {
			if object.Err != nil {
				return object.Err
			}
			if keys = append(keys, object.Key); len(keys) == s.batch {
				return nil
			}
		}
		return ctx.Err()
	})
	return keys, err
}

// remove deletes keys of the bucket. Missing keys are not an error.
func (s *Store) remove(ctx context.Context, keys []string) error {
	if len(keys) == 1 {
		return s.removeOne(ctx, keys[0])
	}
	err := s.try(ctx, 0, func(ctx context.Context) error {
		objects := make(chan minio.ObjectInfo, len(keys))
		for _, key := range keys {
			objects <- minio.ObjectInfo{Key: key}
		}
		close(objects)
		var first error
		for failed := range s.core.RemoveObjects(ctx, s.bucket, objects, minio.RemoveObjectsOptions{}) {
			if first == nil { // drain the channel
				first = failed.Err
			}
		}
		return first
	})
	// Some stores do not support multi-object deletes.
	if r, ok := errors.AsType[*refusal](err); ok && (r.code == minio.NotImplemented || r.status == 501) {
		for key := range slices.Values(keys) {
			if err := s.removeOne(ctx, key); err != nil {
				return err
			}
		}
		return nil
	}
	return err
}

func (s *Store) removeOne(ctx context.Context, key string) error {
	err := s.try(ctx, 0, func(ctx context.Context) error {
		return s.core.RemoveObject(ctx, s.bucket, key, minio.RemoveObjectOptions{})
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
