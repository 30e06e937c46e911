package chromium

import "strings"

// careful are the flags of every browser, wherever it runs: nothing leaves the browser
// except what pages ask for, and it shows no window, asks no question, makes no sound.
var careful = strings.Fields(`
	disable-gpu window-size=1280,860 disable-quic no-pings
	webrtc-ip-handling-policy=disable_non_proxied_udp force-webrtc-ip-handling-policy
	block-new-web-contents disable-component-update disable-domain-reliability
	disable-features=Translate,BlinkGenPropertyTrees,OptimizationHints,MediaRouter,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,AutofillServerCommunication,Prerender2
	mute-audio deny-permission-prompts
`)

// usual are the flags that chromedp gives to a browser that it starts itself.
var usual = strings.Fields(`
	no-first-run no-default-browser-check headless=new hide-scrollbars disable-background-networking
	enable-features=NetworkService,NetworkServiceInProcess disable-background-timer-throttling
	disable-backgrounding-occluded-windows disable-breakpad disable-client-side-phishing-detection
	disable-default-apps disable-dev-shm-usage disable-extensions disable-hang-monitor
	disable-ipc-flooding-protection disable-popup-blocking disable-prompt-on-repost
	disable-renderer-backgrounding disable-sync force-color-profile=srgb metrics-recording-only
	safebrowsing-disable-auto-update enable-automation password-store=basic
`)
