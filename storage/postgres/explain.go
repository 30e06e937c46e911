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
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/claybot/claybot/storage"
)

// A SetupError says what is wrong with the database or the way to it, and what to do
// next. It has no secret in it.
type SetupError struct {
	Problem string
	Next    string
	Err     error // what the server or the network said; may be nil
}

func (e *SetupError) Error() string { return "PostgreSQL: " + e.Problem + "; " + e.Next }

func (e *SetupError) Unwrap() error { return e.Err }

// explain turns an error of Open into a *SetupError.
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

// explainMigration says which migration failed, and how to go on: what is done of it
// stays done.
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

// understood reports whether an address is one of a database: pgx takes an address that
// is none, such as one with a # in the password, for one without a host.
func understood(rawURL string) bool {
	if !strings.Contains(rawURL, "://") {
		return true // settings, which pgx has read
	}
	u, err := url.Parse(rawURL)
	return err == nil && u.Fragment == "" && (u.Host != "" || u.Query().Has("host"))
}

// misset names a parameter of a storage URL without which it could be read. It is empty
// where the fault is elsewhere.
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

// refused names a parameter that a storage URL passes to the server, and that an error
// of the server is about. pgx passes on what it does not know.
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

// namesPassword reports whether there is a password to log in with, in the storage URL,
// the environment or a file of passwords.
func namesPassword(rawURL string) bool {
	c, err := pgconn.ParseConfig(rawURL)
	return err != nil || c.Password != ""
}

// What the server says of parameters that it does not know, or not so.
const (
	codeUnknownName = "42704"
	codeBadValue    = "22023"
)

// refusesTLS reports that encryption could not be agreed on.
func refusesTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &verify) || errors.As(err, &header) || errors.As(err, &alert) || strings.Contains(err.Error(), "server refused TLS connection") // pgx has no value for it
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

// Crowded says what to do about an error of a database that is open when no connection
// is left to it: that of Open, for what is asked later. nil for all other errors.
func Crowded(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != codeTooMany {
		return nil
	}
	return explainFull(pg, func(problem, next string) error {
		return &SetupError{Problem: problem, Next: next, Err: pg}
	})
}

// explainFull says whose limit of connections is reached. What the server says about it
// is in its own language; which of its functions says so is not.
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

// named is a user, or where one is found, in a storage URL that is none, but a list of
// settings.
var named = regexp.MustCompile(`(?i)\b(?:user|service)\s*=\s*[^\s']`)

// namesUser reports whether a storage URL says who logs in, or the environment does for
// it. Else it is the user of this process.
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

// hostOf is the host of a URL, for people. Of a URL without a user, or one that is
// none, no part is told: a password with odd characters may end up anywhere.
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

// assigned is a password in a storage URL that is none, but a list of settings.
var assigned = regexp.MustCompile(`(?i)password\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]+)`)

// passwordsOf are the passwords that stand in a storage URL, in whatever form.
func passwordsOf(rawURL string) (all []string) {
	if u, err := url.Parse(rawURL); err == nil {
		p, _ := u.User.Password()
		q := u.Query()
		all = append(all, p, q.Get("password"), q.Get("sslpassword"))
	} else if _, rest, ok := strings.Cut(rawURL, "://"); ok { // with characters that belong into %XX
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

// oldestServer is the oldest server that is supported: MERGE-free SQL of 12 and
// later would do, 13 is the oldest that is tested by anybody.
const oldestServer = 13

// createDatabase makes a database for claybot on every server: one whose locale has
// another encoding takes UTF8 only with a locale that has none. Tables have an order of
// their own.
const createDatabase = "CREATE DATABASE <name> OWNER <role> ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"

// A surveyed server is what a connection has found out about it.
type surveyed struct {
	version           int // 150004 is 15.4
	name              string
	standby, readOnly bool
	encoding          string
	synchronousCommit string
	fsync             bool
	fullPageWrites    bool
	maxConnections    int
	schema            string // in which tables are made; empty: there is none
}

func survey(ctx context.Context, conn *pgx.Conn) (s surveyed, err error) {
	err = conn.QueryRow(ctx, `SELECT CAST(current_setting('server_version_num') AS INTEGER), current_setting('server_version'), pg_is_in_recovery(),
		current_setting('transaction_read_only') = 'on', current_setting('server_encoding'), current_setting('synchronous_commit'),
		current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on', CAST(current_setting('max_connections') AS INTEGER),
		coalesce(current_schema(), '')`).
		Scan(&s.version, &s.name, &s.standby, &s.readOnly, &s.encoding, &s.synchronousCommit, &s.fsync, &s.fullPageWrites, &s.maxConnections, &s.schema)
	return s, err
}

// check says why claybot cannot work with the server.
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

// checkRights looks whether the role may read and write each table of a schema. Their
// sequences need no right of their own.
func checkRights(ctx context.Context, conn *pgx.Conn, schema string) error {
	var table, right string
	err := conn.QueryRow(ctx, `SELECT t.relname, p.name FROM pg_class t CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) p (name)
		WHERE t.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND (t.relkind IN ('r', 'p') OR t.relkind = 'v' AND p.name = 'SELECT')
		AND NOT has_table_privilege(t.oid, p.name) ORDER BY 1, 2 LIMIT 1`, schema).Scan(&table, &right)
	if err == pgx.ErrNoRows { //nolint:errorlint // pgx returns it as it is
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

// known reports an error that is claybot's own: it did not come from the way to
// the server.
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

// isGone reports that a connection has ended.
func isGone(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNREFUSED) ||
		strings.Contains(err.Error(), "conn closed") // pgx has no value for it
}
