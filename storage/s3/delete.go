package s3

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/minio/minio-go/v7"

	"github.com/claybot/claybot/storage"
)

// deleteBatch is how many keys one request deletes, as S3 has it.
const deleteBatch = 1000

// Delete is that of storage.Blobs. It goes through the keys in their order, so a
// key that is put meanwhile may stay; a Delete that failed may be called again.
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

// remove deletes keys of the bucket. Those that are gone are no error.
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
			if first == nil { // the channel must be read to its end
				first = failed.Err
			}
		}
		return first
	})
	// Some stores delete single keys only.
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
