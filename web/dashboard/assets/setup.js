// A step looks at providers and platforms, so the page is there before what it finds. How a pairing
// goes on is not stored, so this page looks by itself, as that of health does.

import { refresh } from "./dashboard.js";
import "./health.js";

refresh();
