// Package questions asks people what a run needs to know or to have approved, and takes
// their answers: by text, by button, by command, on the page or over HTTP.
//
// It guarantees that a question has one answer, the first that fits; that only the people
// who are asked can give it; that an approval is never taken from a text written before
// its question could be read; and that an answer is a message, so it is durable before it
// takes effect, and a step that a crash cut off is retried with the same effect.
//
// Buttons, Commands and TextAnswers read answers as people give them; Answers checks
// them; Ledger stores them. The type of an answer is claybot.Answer on the whole way.
//
// The package must not import what runs agents or accepts messages; see Intake.
package questions
