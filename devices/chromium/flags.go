package chromium

import "fmt"

// A flag is an argument of the browser: --name where the value is true,
// --name=value where it is a text.
type flag struct {
	name  string
	value any
}

func (f flag) String() string {
	if text, ok := f.value.(string); ok {
		return fmt.Sprintf("--%s=%s", f.name, text)
	}
	return "--" + f.name
}

// careful are the flags of every browser, wherever it runs: nothing leaves it
// beside what pages ask for, and no window, question or sound comes out of it.
var careful = []flag{
	{"disable-gpu", true},
	{"window-size", "1280,860"},
	{"disable-quic", true},
	{"no-pings", true},
	{"webrtc-ip-handling-policy", "disable_non_proxied_udp"},
	{"force-webrtc-ip-handling-policy", true},
	{"block-new-web-contents", true},
	{"disable-component-update", true},
	{"disable-domain-reliability", true},
	{"disable-features", "Translate,BlinkGenPropertyTrees,OptimizationHints,MediaRouter,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,AutofillServerCommunication,Prerender2"},
	{"mute-audio", true},
	{"deny-permission-prompts", true},
}

// usual are those that the library gives to a browser that it starts itself.
var usual = []flag{
	{"no-first-run", true},
	{"no-default-browser-check", true},
	{"headless", "new"},
	{"hide-scrollbars", true},
	{"disable-background-networking", true},
	{"enable-features", "NetworkService,NetworkServiceInProcess"},
	{"disable-background-timer-throttling", true},
	{"disable-backgrounding-occluded-windows", true},
	{"disable-breakpad", true},
	{"disable-client-side-phishing-detection", true},
	{"disable-default-apps", true},
	{"disable-dev-shm-usage", true},
	{"disable-extensions", true},
	{"disable-hang-monitor", true},
	{"disable-ipc-flooding-protection", true},
	{"disable-popup-blocking", true},
	{"disable-prompt-on-repost", true},
	{"disable-renderer-backgrounding", true},
	{"disable-sync", true},
	{"force-color-profile", "srgb"},
	{"metrics-recording-only", true},
	{"safebrowsing-disable-auto-update", true},
	{"enable-automation", true},
	{"password-store", "basic"},
}
