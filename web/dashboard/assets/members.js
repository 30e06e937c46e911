// Lease renewals of members are no changes that pages are told of, so this page looks by
// itself, as that of health does.

import "./health.js";
