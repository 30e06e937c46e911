package relational

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// answerPrefix begins the ids of the messages that answer questions.
var answerPrefix = string(claybot.Question{}.AnswerID())

// openQuestions keeps what a run is paused for. A question that it has asked
// before stays the same one; those that have an answer are not open.
func openQuestions(c *Conn, run claybot.Run, questions []claybot.Question) error {
	for _, q := range questions {
		if q.ID == "" {
			return fmt.Errorf("question: %w", errNoID)
		}
		body, err := json.Marshal(q)
		if err != nil {
			return err
		}
		n, err := c.exec(`INSERT INTO questions (id, run, agent, asked, open, body)
			VALUES (?1, ?2, ?3, ?4, CASE WHEN EXISTS (SELECT 1 FROM messages WHERE id = ?5) THEN 0 ELSE 1 END, ?6)
			ON CONFLICT (id) DO UPDATE SET open = excluded.open, body = excluded.body WHERE questions.run = excluded.run`,
			q.ID, run.ID, run.Agent, c.now(), q.AnswerID(), body)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("question %s is asked by another run already", q.ID)
		}
	}
	return nil
}

// closeQuestions ends the waiting for the questions of a run.
func closeQuestions(c *Conn, run claybot.RunID) error {
	err := c.do("UPDATE questions SET open = 0 WHERE run = ? AND open = 1", run)
	return err
}

// closeQuestion ends the waiting for the question that a message answers, if it
// answers one.
func closeQuestion(c *Conn, answer claybot.MessageID) error {
	id, ok := strings.CutPrefix(string(answer), answerPrefix)
	if !ok {
		return nil
	}
	err := c.do("UPDATE questions SET open = 0 WHERE id = ? AND open = 1", id)
	return err
}

// questionColumns are what decodeQuestion reads.
const questionColumns = "id, run, agent, asked, body"

// decodeQuestion reads a row of questionColumns. When the body is damaged the
// other fields are right all the same.
func decodeQuestion(r Row) (q storage.OpenQuestion, err error) {
	err = unmarshal(r.Str(4), &q.Question)
	q.ID, q.Run, q.Agent, q.Asked = r.Str(0), claybot.RunID(r.Str(1)), claybot.AgentID(r.Str(2)), claybot.Time(r.Int(3))
	return q, err
}

func questionListing(agent claybot.AgentID, limit int) listing {
	from, args := "questions_open WHERE open = 1 AND asked > 0", []any{limit}
	if agent != "" {
		from, args = "questions_open_agent WHERE open = 1 AND agent = ?", []any{agent, limit}
	}
	return listing{"SELECT " + questionColumns + " FROM questions INDEXED BY " + from + " ORDER BY asked, id LIMIT 0+?", args}
}

// OpenQuestions implements storage.Questions. Damaged ones are left out.
func (db runs) OpenQuestions(ctx context.Context, agent claybot.AgentID, limit int) ([]storage.OpenQuestion, error) {
	l := questionListing(agent, limit)
	var list []storage.OpenQuestion
	err := db.read(ctx, func(c *Conn) error {
		return c.each(l.query, func(r Row) error {
			o, err := decodeQuestion(r)
			if err != nil {
				db.log.Error("a question is damaged", "question", o.ID, "run", o.Run, "err", err)
				return nil
			}
			list = append(list, o)
			return nil
		}, l.args...)
	})
	if err != nil {
		return nil, fmt.Errorf("open questions: %w", err)
	}
	return list, nil
}

// Question implements storage.Questions.
func (db runs) Question(ctx context.Context, id string) (storage.OpenQuestion, error) {
	var q storage.OpenQuestion
	err := db.read(ctx, func(c *Conn) error {
		err := need(c.first("SELECT "+questionColumns+" FROM questions WHERE id = ?",
			func(r Row) (err error) { q, err = decodeQuestion(r); return err }, id))
		if err != nil {
			return err
		}
		_, err = c.first("SELECT body, crc FROM messages WHERE id = ?", func(r Row) error {
			m, err := decodeMessage(r, 0)
			if err == nil && m.Answer != nil {
				q.Answer = m.Answer.To
			}
			return err
		}, q.AnswerID())
		return err
	})
	if err != nil {
		return storage.OpenQuestion{}, fmt.Errorf("question %s: %w", id, err)
	}
	return q, nil
}
