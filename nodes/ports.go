package nodes

// The ports of a profile: what it works with hangs on them.
const (
	PortModel  = "model"
	PortTools  = "tools"
	PortMemory = "memory"
)

// Ports are the ports of a profile, in their order.
var Ports = []string{PortModel, PortTools, PortMemory}

// PortOf is the port of a profile that a node of a kind hangs on.
func PortOf(kind string) string {
	switch kind {
	case Model:
		return PortModel
	case Memory:
		return PortMemory
	}
	return PortTools
}
