package api

import (
	"net/http"

	"github.com/claybot/claybot/nodes"
	"github.com/claybot/claybot/web"
)

// nodeCalls serves what is configured; where no nodes are shown, its operations fail.
type nodeCalls struct{ web.Nodes }

func (n nodeCalls) operations() []operation {
	all := operation{tag: "nodes", fails: []int{http.StatusNotFound, http.StatusConflict}, missing: hint{"No such node.", "GET /nodes lists all nodes."}}.like(
		returns(http.StatusOK, op("listNodes", web.Read, "GET /nodes", "List what is configured: how each node does and what it uses.").failing(http.StatusNotFound), func(r *http.Request) (web.NodeList, error) {
			all, err := n.Nodes.Nodes(r.Context())
			return web.NodeList{Nodes: orEmpty(all)}, err
		}),
		returns(http.StatusOK, op("callNode", web.Admin, "POST /nodes/{kind}/{name}/{call}", "Start, stop, restart or test a node.").
			explained("The calls are start, stop, restart and test; one that would change nothing succeeds. What is stopped stays so, also after a restart of the daemon and in all cluster members, until it is started."), func(r *http.Request) (web.NodeDone, error) {
			return n.CallNode(r.Context(), nodes.Key{Kind: r.PathValue("kind"), Name: r.PathValue("name")}, r.PathValue("call"), web.User(r))
		}),
	)
	return whereOn(n.Nodes != nil, &web.Problem{Status: http.StatusNotFound, Code: "off", Message: "This daemon shows no nodes."}, all)
}
