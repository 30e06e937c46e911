package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
)

// Foreign returns the rows that a query finds in the database file of another program, of text columns;
// NULL is empty. The file must be a copy: it is opened as its owner would, so a log beside it is taken in.
func Foreign(ctx context.Context, path, query string) ([][]string, error) {
	rows, err := foreign(ctx, path, query)
	if err != nil {
		return nil, fmt.Errorf("read the database: %w", err)
	}
	return rows, nil
}

func foreign(ctx context.Context, path, query string) (all [][]string, err error) {
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}
	db, err := sql.Open("sqlite", file.String())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range row {
			into[i] = (*text)(&row[i])
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// A text is a value as text; NULL is empty.
type text string

// Scan implements sql.Scanner.
func (t *text) Scan(v any) error {
	var s sql.NullString
	err := s.Scan(v)
	*t = text(s.String)
	return err
}
