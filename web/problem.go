package web

// A Problem is why a request was not followed, in the one shape that all errors have.
type Problem struct {
	Status  int               `json:"-"` // of the answer
	Wait    int               `json:"-"` // seconds until a retry may succeed; 0: unknown
	Kind    string            `json:"-"` // for OpenAI clients; empty: by the status
	Ended   bool              `json:"-"` // the run has ended: this is its answer
	Code    string            `json:"code" doc:"For programs."`
	Message string            `json:"message" doc:"For people."`
	Fix     string            `json:"fix,omitempty" doc:"What to do about it."`
	Fields  map[string]string `json:"fields,omitempty" doc:"What is wrong with each field or answer."`
}

func (p *Problem) Error() string { return p.Message }

// A Failure is the body of an answer that reports a problem.
type Failure struct {
	Error Problem `json:"error"`
}
