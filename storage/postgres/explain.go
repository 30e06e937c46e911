package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claybot/claybot/lazyregexp"
	"github.com/claybot/claybot/storage"
)

// A SetupError describes a problem with the database or the connection to it and the
// next step to fix it. It contains no secret.
type SetupError struct {
	Problem string
	Next    string
	Err     error // from the server or the network; may be nil
}

func (e *SetupError) Error() string { return "PostgreSQL: " + e.Problem + "; " + e.Next }

func (e *SetupError) Unwrap() error { return e.Err }

// explain converts an error of Open to a *SetupError.
func explain(rawURL string, err error) error {
	if setup := (*SetupError)(nil); errors.As(err, &setup) {
		return setup
	}
	say := func(problem, next string) error {
		return &SetupError{Problem: problem, Next: next, Err: redacted{err, rawURL}}
	}
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) || !understood(rawURL) {
		if name := misset(rawURL); name != "" {
			return say("the parameter "+name+" of the storage URL has a value that cannot be used", "correct it, or leave it out")
		}
		return say("the storage URL cannot be understood", "write it as postgres://user:password@host:5432/database, with special characters of the password as %XX")
	}
	if errors.Is(err, errNewer) {
		return say(err.Error(), "start that version of claybot or a later one; nothing was changed")
	}
	where := hostOf(rawURL)
	if failed := (*migrationError)(nil); errors.As(err, &failed) {
		return explainMigration(failed, rawURL, where, say)
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return explainServer(pg, rawURL, say)
	}
	var dns *net.DNSError
	switch {
	case refusesTLS(err):
		return say("the encrypted connection to "+where+" cannot be made", "set sslmode, and sslrootcert where the authority is your own, in the storage URL as the server needs them")
	case errors.As(err, &dns):
		return say(fmt.Sprintf("the host %s is not known", where), "correct the host in the storage URL, or the name service")
	case errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err):
		return say(fmt.Sprintf("%s does not answer in time", where), "look whether the server is up and a firewall lets this machine through")
	case isGone(err):
		return say(fmt.Sprintf("%s cannot be reached", where), "look whether the server is up, and whether host and port in the storage URL are right")
	}
	return say("it cannot be used: "+redacted{err, rawURL}.Error(), "run `claybot doctor` for more")
}

// explainMigration describes a failed migration and how to continue. Completed steps
// are kept.
func explainMigration(failed *migrationError, rawURL, where string, say func(problem, next string) error) error {
	const resume = "start claybot again, or run `claybot migrate`; steps that are done are not repeated"
	name := fmt.Sprintf("migration %d", failed.version)
	if failed.steps > 1 {
		name = fmt.Sprintf("migration %d (step %d of %d)", failed.version, failed.step, failed.steps)
	}
	var pg *pgconn.PgError
	switch {
	case errors.Is(failed.err, context.Canceled), errors.Is(failed.err, context.DeadlineExceeded):
		return say(name+" was interrupted", resume)
	case errors.As(failed.err, &pg) && pg.Code == codeNoRight:
		return say(name+" lacks a right: "+pg.Message, "let the role of the storage URL own the database with its tables, or GRANT it the right, then "+resume)
	case errors.As(failed.err, &pg) && pg.Code == codeDiskFull:
		return say(name+" filled the server's disk", "free some space there, then "+resume)
	case errors.As(failed.err, &pg) && !strings.HasPrefix(pg.Code, "57P"):
		return say(fmt.Sprintf("%s failed: %s (SQLSTATE %s)", name, pg.Message, pg.Code), "see the log of the server, then "+resume)
	case errors.As(failed.err, &pg), isGone(failed.err):
		return say(name+" was interrupted: the connection to "+where+" broke", resume)
	}
	return say(name+" failed: "+redacted{failed.err, rawURL}.Error(), resume)
}

// understood reports whether pgx parsed the address as a database address: pgx treats
// an invalid one, such as a password with a #, as an address without a host.
func understood(rawURL string) bool {
	if !strings.Contains(rawURL, "://") {
		return true // settings, which pgx has read
	}
	u, err := url.Parse(rawURL)
	return err == nil && u.Fragment == "" && (u.Host != "" || u.Query().Has("host"))
}

// misset returns the parameter that makes a storage URL invalid, or "" if the fault
// is elsewhere.
func misset(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "" || !understood(rawURL) {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		rest := *u
		q := u.Query()
		q.Del(name)
		rest.RawQuery = q.Encode()
		if _, err := pgconn.ParseConfig(rest.String()); err == nil {
			return name
		}
	}
	return ""
}

// refused returns the URL parameter that an error of the server is about. pgx passes
// parameters that it does not know to the server.
func refused(rawURL string, pg *pgconn.PgError) string {
	c, err := pgconn.ParseConfig(rawURL)
	if err != nil || pg.Code != codeUnknownName && pg.Code != codeBadValue && pg.Code != codeProtocol {
		return ""
	}
	for name := range c.RuntimeParams {
		if strings.Contains(pg.Message, name) {
			return name
		}
	}
	return ""
}

// namesPassword reports whether the storage URL, the environment or a password file
// has a password.
func namesPassword(rawURL string) bool {
	c, err := pgconn.ParseConfig(rawURL)
	return err != nil || c.Password != ""
}

// Errors of the server about unknown or invalid parameters.
const (
	codeUnknownName = "42704"
	codeBadValue    = "22023"
)

// refusesTLS reports whether err is a failed TLS negotiation.
func refusesTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &verify) || errors.As(err, &header) || errors.As(err, &alert) || strings.Contains(err.Error(), "server refused TLS connection") // pgx has no error value for it
}

func explainServer(pg *pgconn.PgError, rawURL string, say func(problem, next string) error) error {
	where := hostOf(rawURL)
	if (pg.Code == codeNoPassword || pg.Code == codeNoRole) && !namesUser(rawURL) {
		return say("the storage URL names no user, and the server does not let in the one who runs claybot", "write it as postgres://user:password@host:5432/database")
	}
	if name := refused(rawURL, pg); name != "" {
		problem := "the storage URL has the parameter " + name + ", which the server does not know"
		if pg.Code == codeBadValue {
			problem = "the parameter " + name + " of the storage URL has a value that the server does not take"
		}
		return say(problem, "correct it, or leave it out")
	}
	if pg.Code == codeNoPassword && !namesPassword(rawURL) {
		return say("the storage URL names no password, and "+where+" asks for one", "write it as postgres://user:password@host:5432/database")
	}
	switch pg.Code {
	case codeNoPassword:
		return say("the password for "+where+" is wrong", "correct it in CLAYBOT_STORAGE_URL")
	case codeNoRole:
		return say("the role of the storage URL may not log in at "+where, "create it, or let pg_hba.conf allow it: "+pg.Message)
	case codeNoDatabase:
		return say(pg.Message, "create it with: "+createDatabase+", or correct its name in the storage URL")
	case codeNoRight:
		return say("a right is missing: "+pg.Message, "let the role of the storage URL own the database, or GRANT CREATE, USAGE ON SCHEMA and ALL ON ALL TABLES to it")
	case codeReadOnly:
		return say("the database only reads", "let the URL name the primary, for example with target_session_attrs=read-write")
	case codeTooMany:
		return explainFull(pg, say)
	case codeDiskFull:
		return say("the server's disk is full", "free some space there")
	}
	if pg.Code == codeProtocol && strings.Contains(pg.Message, "startup parameter") {
		return say("a pooler stands before the server and does not take this: "+pg.Message, "set storage.pooler (CLAYBOT_STORAGE_POOLER) to true, or name the server itself in the storage URL")
	}
	if strings.HasPrefix(pg.Code, "57P") {
		return say("the server is starting or stopping", "try again in a moment")
	}
	return say(fmt.Sprintf("the server refuses: %s (SQLSTATE %s)", pg.Message, pg.Code), "see the log of the server")
}

// Crowded returns a SetupError if err means that an open database has no connection
// left, and nil otherwise.
func Crowded(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != codeTooMany {
		return nil
	}
	return explainFull(pg, func(problem, next string) error {
		return &SetupError{Problem: problem, Next: next, Err: pg}
	})
}

// explainFull explains which connection limit is reached. The server localizes the
// message of the error but not the name of the routine that reports it.
func explainFull(pg *pgconn.PgError, say func(problem, next string) error) error {
	const lower = ", or lower storage.connections of each node"
	switch pg.Routine {
	case "InitializeSessionUserId":
		return say("the role of the storage URL has no connection left", "raise its limit with: ALTER ROLE <role> CONNECTION LIMIT <number>"+lower)
	case "CheckMyDatabase":
		return say("the database has no connection left", "raise its limit with: ALTER DATABASE <name> CONNECTION LIMIT <number>"+lower)
	}
	return say("the server has no connection left", "raise max_connections"+lower)
}

// named matches a user or service in a storage URL in the form of a list of settings.
var named = lazyregexp.New(`(?i)\b(?:user|service)\s*=\s*[^\s']`)

// namesUser reports whether the storage URL or the environment names a user. The
// default is the user of this process.
func namesUser(rawURL string) bool {
	if os.Getenv("PGUSER") != "" || os.Getenv("PGSERVICE") != "" {
		return true
	}
	if !strings.Contains(rawURL, "://") {
		return named.MatchString(rawURL)
	}
	u, err := url.Parse(rawURL)
	return err != nil || u.User.Username() != "" || u.Query().Get("user") != "" || u.Query().Get("service") != ""
}

// hostOf returns the host of a URL for display. It returns no part of an invalid URL
// or one without a user: a password with special characters may end up anywhere.
func hostOf(rawURL string) string {
	if u, err := url.Parse(rawURL); err == nil && u.Host != "" && u.User != nil {
		return u.Host
	}
	return "the server"
}

// redacted is an error without the passwords of a URL.
type redacted struct {
	err error
	url string
}

func (r redacted) Error() string {
	s := strings.ReplaceAll(r.err.Error(), r.url, "<storage URL>")
	for _, p := range passwordsOf(r.url) {
		for _, form := range []string{p, url.QueryEscape(p), url.PathEscape(p)} {
			s = strings.ReplaceAll(s, form, "xxxxx")
		}
	}
	return s
}

func (r redacted) Unwrap() error { return r.err }

// assigned matches a password in a storage URL in the form of a list of settings.
var assigned = lazyregexp.New(`(?i)password\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)`)

// passwordsOf returns the passwords in a storage URL of any form.
func passwordsOf(rawURL string) (all []string) {
	if u, err := url.Parse(rawURL); err == nil {
		p, _ := u.User.Password()
		q := u.Query()
		all = append(all, p, q.Get("password"), q.Get("sslpassword"))
	} else if _, rest, ok := strings.Cut(rawURL, "://"); ok { // with unescaped characters
		if i := strings.LastIndex(rest, "@"); i > 0 {
			_, p, _ := strings.Cut(rest[:i], ":")
			all = append(all, p)
		}
	}
	for _, m := range assigned.FindAllStringSubmatch(rawURL, -1) {
		all = append(all, m[1], strings.Trim(m[1], "'"))
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// oldestServer is the oldest supported server. The statements work with 12; 13 is the
// oldest tested version.
const oldestServer = 13

// createDatabase works on every server: a locale of another encoding rejects UTF8,
// the C locale does not. Tables set their own collation.
const createDatabase = "CREATE DATABASE <name> OWNER <role> ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"

// surveyed is what a connection found out about its server.
type surveyed struct {
	version           int // 150004 is 15.4
	name              string
	standby, readOnly bool
	encoding          string
	synchronousCommit string
	fsync             bool
	fullPageWrites    bool
	maxConnections    int
	schema            string // in which tables are created; empty: there is none
}

func survey(ctx context.Context, conn *pgx.Conn) (s surveyed, err error) {
	err = conn.QueryRow(ctx, `SELECT CAST(current_setting('server_version_num') AS INTEGER), current_setting('server_version'), pg_is_in_recovery(),
		current_setting('transaction_read_only') = 'on', current_setting('server_encoding'), current_setting('synchronous_commit'),
		current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', CAST(current_setting('max_connections') AS INTEGER),
		coalesce(current_schema(), '')`).
		Scan(&s.version, &s.name, &s.standby, &s.readOnly, &s.encoding, &s.synchronousCommit, &s.fsync, &s.fullPageWrites, &s.maxConnections, &s.schema)
	return s, err
}

// check returns why claybot cannot work with the server, or nil.
func (s surveyed) check() error {
	switch {
	case s.version < oldestServer*10000:
		return &SetupError{
			Problem: fmt.Sprintf("the server is PostgreSQL %s", s.name),
			Next:    fmt.Sprintf("claybot needs %d or later: upgrade it, or use another one", oldestServer),
		}
	case s.standby:
		return &SetupError{Problem: "the server is a standby that only reads", Next: "let the URL name the primary, for example with target_session_attrs=read-write"}
	case s.readOnly:
		return &SetupError{Problem: "the database only reads", Next: "set default_transaction_read_only to off for the role and the database of the URL"}
	case s.encoding != "UTF8":
		return &SetupError{
			Problem: "the database's encoding is " + s.encoding + ", and claybot needs UTF8",
			Next:    "an encoding cannot be changed: make another database with: " + createDatabase + ", and name that one in the storage URL",
		}
	case s.schema == "":
		return &SetupError{Problem: "no schema of the search path exists that the role may use", Next: "create one, or GRANT USAGE, CREATE on it to the role, or name another one by ?search_path= in the URL"}
	}
	return nil
}

// checkRights checks that the role may read and write each table of a schema. The
// sequences need no privilege of their own.
func checkRights(ctx context.Context, conn *pgx.Conn, schema string) error {
	var table, right string
	err := conn.QueryRow(ctx, `SELECT t.relname, p.name FROM pg_class t CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (name)
		WHERE t.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND (t.relkind IN ('r', 'p') OR t.relkind = 'v' AND p.name = 'SELECT')
		AND NOT has_table_privilege(t.oid, p.name) ORDER BY 1, 2 LIMIT 1`, schema).Scan(&table, &right)
	if err == pgx.ErrNoRows { //nolint:errorlint // pgx does not wrap it
		return nil
	}
	if err != nil {
		return err
	}
	return &SetupError{
		Problem: fmt.Sprintf("the role of the storage URL may not %s in the table %s", right, table),
		Next:    "let the owner of the tables run: GRANT ALL ON ALL TABLES IN SCHEMA " + pgx.Identifier{schema}.Sanitize() + " TO <role>",
	}
}

// known reports whether err is claybot's own and did not come from the connection.
func known(err error) bool {
	for _, e := range []error{
		storage.ErrLeaseLost, storage.ErrNotFound, storage.ErrDamaged, storage.ErrCanceled, storage.ErrTooMany, storage.ErrState, storage.ErrHeld,
		storage.ErrBusy, storage.ErrFull, pgx.ErrNoRows,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// isGone reports whether err means that the connection has ended.
func isGone(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) ||
		strings.Contains(err.Error(), "conn closed") // pgx has no error value for it
}
