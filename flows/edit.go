package flows

import "encoding/json"

// An Edit changes one value in the file of a flow. It sets Value, or YAML, gives the key another name, or, without
// both, removes the key. A group of keys that it sets is compared with the one that is there: keys that
// stay keep their place.
type Edit struct {
	Path   []string        `json:"path" doc:"Keys from the root of the file, such as nodes, pay, next. What is missing on the way is created."`
	Value  json.RawMessage `json:"value,omitempty" doc:"The new value. Without it, yaml and rename, the key is removed, and groups that this leaves empty."`
	YAML   string          `json:"yaml,omitempty" doc:"The new value as the file has it, instead of value."`
	Rename string          `json:"rename,omitempty" doc:"The new name of the key, instead of value."`
}
