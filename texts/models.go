package texts

import (
	"strings"

	"github.com/claybot/claybot/connectors"
)

// ModelOperators refuses /model with a name to people who may not choose a model.
const ModelOperators = "Only an operator can change the model here."

// ModelNow answers /model without a name. names are the models to choose from; none means that
// the reader may not choose.
func (v Voice) ModelNow(now string, names []string) string {
	switch {
	case len(names) == 0:
		return v.Say("I use the model %s here. Only an operator can change that.", now)
	case len(names) == 1 && names[0] == now:
		return v.Say("I use the model %s here. There is no other one to choose.", now)
	}
	return v.Say("I use the model %s here. To change that, send /model and one of: %s. /model default takes a choice back.", now, strings.Join(names, ", "))
}

// NoModel refuses a model that is not among names.
func (v Voice) NoModel(word string, names []string) string {
	return v.Say("I can't use a model “%s” here. Send /model and one of: %s.", connectors.Literal(word, 40), strings.Join(names, ", "))
}

// ModelChosen confirms /model; def is the model of the agent's profile, which an empty name stands for.
func (v Voice) ModelChosen(name, def string, byDefault bool) string {
	switch {
	case byDefault:
		return v.Say("Done. Without a choice, I use the model %s here.", def)
	case name == "":
		name = def
	}
	return v.Say("Done. From my next task on, I use the model %s here.", name)
}
