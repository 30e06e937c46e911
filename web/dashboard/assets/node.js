// A page of a node looks by itself whether its state has changed, as the map does.

import "./health.js";
