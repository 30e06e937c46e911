// The states of nodes are not stored, so no note comes when they change: this page looks by itself,
// as that of health does.

import "./health.js";
