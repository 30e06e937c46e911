package web

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// A certificate is that of the page, read from two PEM files and read again
// when they have changed.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu   sync.Mutex
	now  *tls.Certificate
	seen [2]stamp
}

// A stamp identifies one version of a file.
type stamp struct {
	at   time.Time
	size int64
}

// openCertificate reads a certificate. The error is a sentence for the operator.
func openCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	c.seen = c.stamps()
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, Refusal(fmt.Sprintf("the certificate cannot be used: %v; set http.tls_cert and http.tls_key to PEM files that belong together", err))
	}
	c.now = &cert
	if info, err := os.Stat(keyFile); err == nil && info.Mode().Perm()&0o004 != 0 {
		log.Warn("every user of this machine can read the certificate's key: run chmod 600 on it", "file", keyFile)
	}
	return c, nil
}

func (c *certificate) stamps() (s [2]stamp) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return s
}

// current returns the certificate for a new connection. While the files are
// unusable, for example during a replacement, it returns the previous one.
func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.stamps(); s != c.seen {
		c.seen = s
		cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
		if err != nil {
			c.log.Error("the new certificate cannot be used; the one before stays", "err", err)
			return c.now
		}
		c.now = &cert
		c.log.Info("certificate reloaded", "until", cert.Leaf.NotAfter)
	}
	return c.now
}

func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

func (c *certificate) names(host string) bool {
	leaf := c.current().Leaf
	return leaf != nil && leaf.VerifyHostname(host) == nil
}
