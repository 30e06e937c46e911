package dashboard

import "github.com/claybot/claybot/web"

// sections are the pages, each of which brings its routes.
var sections = []func(*board) []web.Route{
	(*board).chatRoutes,
	(*board).agentRoutes,
	(*board).runRoutes,
	(*board).questionRoutes,
	(*board).toolRoutes,
	(*board).noteRoutes,
	(*board).scheduleRoutes,
	(*board).deliveryRoutes,
	(*board).usageRoutes,
	(*board).budgetRoutes,
	(*board).accessRoutes,
	(*board).healthRoutes,
	(*board).nodeRoutes,
	(*board).whyRoutes,
}
