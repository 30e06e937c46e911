package dashboard

import "html/template"

// icons are drawn on 24 by 24 with a stroke in the colour of the text.
var icons = map[string]string{
	"chat":    `<path d="M4 5h16v11H9l-5 4z"/><path d="M8 9h8M8 12h5"/>`,
	"agents":  `<circle cx="12" cy="8" r="3.5"/><path d="M5 20c.6-4 3.4-6 7-6s6.4 2 7 6"/>`,
	"runs":    `<path d="M4 12h4l2.5-6 4 12 2.5-6h3"/>`,
	"clock":   `<circle cx="12" cy="12" r="8"/><path d="M12 7.500V12l3 2"/>`,
	"send":    `<path d="M20 4 4 11l6 2.500L12.5 20z"/><path d="m10 13.5 4-4"/>`,
	"chart":   `<path d="M5 20V10M10 20V4M15 20v-7M20 20V8"/>`,
	"key":     `<circle cx="8" cy="15" r="3.5"/><path d="m10.5 12.5 8-8M15.5 7.500l2.5 2.5"/>`,
	"pulse":   `<path d="M12 20s-8-4.8-8-10.500A4.5 4.5 0 0 1 12 7a4.5 4.5 0 0 1 8 2.500C20 15.2 12 20 12 20z"/>`,
	"search":  `<circle cx="11" cy="11" r="6"/><path d="m20 20-4.5-4.5"/>`,
	"more":    `<circle cx="5" cy="12" r="1"/><circle cx="12" cy="12" r="1"/><circle cx="19" cy="12" r="1"/>`,
	"theme":   `<circle cx="12" cy="12" r="8"/><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/>`,
	"leave":   `<path d="M10 4H5v16h5M14 8l4 4-4 4M18 12H9"/>`,
	"plus":    `<path d="M12 5v14M5 12h14"/>`,
	"stop":    `<rect x="6" y="6" width="12" height="12" rx="2"/>`,
	"reset":   `<path d="M5 12a7 7 0 1 0 2.5-5.400M5 4v4h4"/>`,
	"trash":   `<path d="M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13"/>`,
	"tool":    `<path d="m14 7 3-3a4.5 4.5 0 0 1-5.5 6L6 15.500A1.8 1.8 0 1 0 8.5 18l5.5-5.500a4.5 4.5 0 0 0 6-5.500l-3 3z"/>`,
	"person":  `<circle cx="12" cy="8" r="3.5"/><path d="M5 20c.6-4 3.4-6 7-6s6.4 2 7 6"/>`,
	"spark":   `<path d="M12 4v5M12 15v5M4 12h5M15 12h5M6.5 6.5 9 9M15 15l2.5 2.500M17.5 6.5 15 9M9 15l-2.5 2.5"/>`,
	"ask":     `<circle cx="12" cy="12" r="8"/><path d="M9.8 9.800a2.3 2.3 0 1 1 3.2 2.100c-.7.4-1 .8-1 1.600M12 16.500v.1"/>`,
	"flag":    `<path d="M6 20V4h11l-2 4 2 4H6"/>`,
	"warn":    `<path d="M12 4 3 20h18zM12 10v4M12 17v.1"/>`,
	"fork":    `<circle cx="6" cy="6" r="2"/><circle cx="18" cy="6" r="2"/><circle cx="12" cy="19" r="2"/><path d="M6 8v2c0 2 6 2 6 4v3M18 8v2c0 2-6 2-6 4"/>`,
	"fold":    `<path d="M4 6h16M4 12h10M4 18h6"/>`,
	"clip":    `<path d="m19 11-7.5 7.500a4.5 4.5 0 0 1-6.4-6.400L13 4.300a3 3 0 0 1 4.3 4.200l-7.8 7.800a1.5 1.5 0 0 1-2.2-2.100l7-7"/>`,
	"check":   `<path d="m5 12.5 4.5 4.500L19 7.5"/>`,
	"todo":    `<circle cx="12" cy="12" r="7"/>`,
	"skip":    `<circle cx="12" cy="12" r="7"/><path d="m7 17 10-10"/>`,
	"map":     `<path d="m4 6 5-2 6 2 5-2v14l-5 2-6-2-5 2zM9 4v14M15 6v14"/>`,
	"menu":    `<path d="M4 7h16M4 12h16M4 17h16"/>`,
	"back":    `<path d="m14 6-6 6 6 6"/>`,
	"refresh": `<path d="M19 12a7 7 0 1 1-2-4.900M19 4v4h-4"/>`,
}

// icon draws one of the icons above; it says nothing to a screen reader.
func icon(name string) template.HTML {
	return template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">` + icons[name] + `</svg>`) //nolint:gosec // constants
}
