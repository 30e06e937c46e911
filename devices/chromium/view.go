package chromium

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/claybot/claybot/devices"
)

var _ devices.Viewer = (*device)(nil)

func (d *device) Text(ctx context.Context) (string, error) {
	var r reading
	err := d.call(ctx, lookLimit, "read the page", func(tab context.Context) error {
		return d.run(tab, wish{Max: devices.MaxWholeText}, &r)
	})
	if err != nil {
		return "", err
	}
	return devices.Plainly(r.Text, devices.MaxWholeText), nil
}

// tallest is how much of a page, in its own pixels, is in one picture.
const tallest = 10_000

func (d *device) Picture(ctx context.Context, whole bool) (png []byte, err error) {
	err = d.call(ctx, lookLimit, "take a picture", func(tab context.Context) error {
		if !whole {
			png, err = picture(tab)
			return err
		}
		m, err := chromedp.Call(tab, page.GetLayoutMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		size := page.Viewport{Width: 1280, Height: 860}
		if c := m.CSSContentSize; c != nil {
			size.Width, size.Height = min(max(c.Width, 1), tallest), min(max(c.Height, 1), tallest)
		}
		png, err = pictureOf(tab, size)
		return err
	})
	if err == nil && len(png) == 0 {
		return nil, devices.Failed("a picture of this page is too large")
	}
	return png, err
}

func pictureOf(tab context.Context, size page.Viewport) ([]byte, error) {
	yes := true
	return shot(tab, []float64{1, 0.5, 0.25, 0.1}, func(scale float64) page.CaptureScreenshotParams {
		size.Scale = scale
		return page.CaptureScreenshotParams{Clip: &size, CaptureBeyondViewport: &yes}
	})
}

func enter(tab context.Context) error {
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeChar, input.DispatchKeyEventTypeKeyUp} {
		p := input.DispatchKeyEventParams{Type: kind, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13, NativeVirtualKeyCode: 13}
		if kind == input.DispatchKeyEventTypeChar {
			p.Text, p.UnmodifiedText = "\r", "\r"
		}
		if _, err := chromedp.Call(tab, input.DispatchKeyEvent, p); err != nil {
			return err
		}
	}
	return nil
}
