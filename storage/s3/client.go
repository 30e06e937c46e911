package s3

import (
	"context"
	"io"
	"iter"
	"net/http"

	"github.com/minio/minio-go/v7"
)

// A client has the methods of the library's client that the store calls. They are
// functions because of the size of the binary: html/template finds methods by name, so
// the linker keeps all 200 methods of a client that is in a field or in an interface.
type client struct {
	GetObject               func(ctx context.Context, bucket, key string, opts minio.GetObjectOptions) (io.ReadCloser, minio.ObjectInfo, http.Header, error)
	StatObject              func(ctx context.Context, bucket, key string, opts minio.StatObjectOptions) (minio.ObjectInfo, error)
	PutObject               func(ctx context.Context, bucket, key string, data io.Reader, size int64, md5, sha256 string, opts minio.PutObjectOptions) (minio.UploadInfo, error)
	NewMultipartUpload      func(ctx context.Context, bucket, key string, opts minio.PutObjectOptions) (string, error)
	PutObjectPart           func(ctx context.Context, bucket, key, upload string, part int, data io.Reader, size int64, opts minio.PutObjectPartOptions) (minio.ObjectPart, error)
	CompleteMultipartUpload func(ctx context.Context, bucket, key, upload string, parts []minio.CompletePart, opts minio.PutObjectOptions) (minio.UploadInfo, error)
	AbortMultipartUpload    func(ctx context.Context, bucket, key, upload string) error
	ListObjectsIter         func(ctx context.Context, bucket string, opts minio.ListObjectsOptions) iter.Seq[minio.ObjectInfo]
	RemoveObjects           func(ctx context.Context, bucket string, objects <-chan minio.ObjectInfo, opts minio.RemoveObjectsOptions) <-chan minio.RemoveObjectError
	RemoveObject            func(ctx context.Context, bucket, key string, opts minio.RemoveObjectOptions) error
}

func newClient(endpoint string, opts *minio.Options) (client, error) {
	c, err := minio.NewCore(endpoint, opts)
	if err != nil {
		return client{}, err
	}
	return client{
		GetObject:               c.GetObject,
		StatObject:              c.StatObject,
		PutObject:               c.PutObject,
		NewMultipartUpload:      c.NewMultipartUpload,
		PutObjectPart:           c.PutObjectPart,
		CompleteMultipartUpload: c.CompleteMultipartUpload,
		AbortMultipartUpload:    c.AbortMultipartUpload,
		ListObjectsIter:         c.ListObjectsIter,
		RemoveObjects:           c.RemoveObjects,
		RemoveObject:            c.RemoveObject,
	}, nil
}
