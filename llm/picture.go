package llm

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"

	"golang.org/x/image/webp"
)

// Limits of pictures for models.
const (
	MaxPicture = 5 << 20    // bytes of a file
	MaxPixels  = 50_000_000 // of a file
	MaxSide    = 1568       // pixels of what a model is shown; larger ones are scaled down

	// maxShown is how many bytes a model is shown: as base64, at most 5 MB.
	maxShown = 3_900_000
	// maxDecoded bounds the memory that a picture takes while it is decoded.
	maxDecoded = 200 << 20
	// maxDeflate is how many bytes a byte of a PNG can stand for; a byte holds 8
	// pixels at most.
	maxDeflate = 1032
	// maxScans is how many scans a JPEG may have. Each one costs work for all
	// pixels, and may take a few bytes only.
	maxScans = 64
)

// ErrNoPicture is the error of what no model can be shown.
var ErrNoPicture = errors.New("not a picture that can be shown")

// Picture makes a file ready for a model: a PNG, JPEG, GIF or WebP of at most
// MaxPicture bytes and MaxPixels, checked by its header before anything is
// decoded. Larger sides than MaxSide are scaled down, of an animation the first
// picture is taken. Whatever the bytes are, it takes a bounded time and at most
// about 250 MiB; callers see to it that not many run at once, see Album. The
// error wraps ErrNoPicture and is fit for people.
func Picture(data []byte) (Image, error) {
	if len(data) > MaxPicture {
		return Image{}, fmt.Errorf("%w: it has more than %d MiB", ErrNoPicture, MaxPicture>>20)
	}
	kind := http.DetectContentType(data)
	f, ok := formats()[kind]
	if !ok {
		return Image{}, fmt.Errorf("%w: it is not a PNG, JPEG, GIF or WebP", ErrNoPicture)
	}
	head, err := safely(func() (image.Config, error) { return f.head(bytes.NewReader(data)) })
	if err != nil || head.Width <= 0 || head.Height <= 0 {
		return Image{}, fmt.Errorf("%w: it is broken", ErrNoPicture)
	}
	if err := affordable(data, kind, head); err != nil {
		return Image{}, err
	}
	m, err := safely(func() (image.Image, error) { return f.decode(bytes.NewReader(data)) })
	if err != nil {
		return Image{}, fmt.Errorf("%w: it is broken", ErrNoPicture)
	}
	size := m.Bounds().Size()
	if int64(size.X)*int64(size.Y) == 0 {
		return Image{}, fmt.Errorf("%w: it is empty", ErrNoPicture)
	}
	if max(size.X, size.Y) <= MaxSide && len(data) <= maxShown && f.asIs && head.ColorModel != color.CMYKModel {
		return Image{MIMEType: kind, Data: data}, nil
	}
	if kind == "image/jpeg" {
		m = upright(m, orientation(data))
	}
	return encoded(scaled(m, MaxSide), kind == "image/jpeg")
}

type format struct {
	head   func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
	asIs   bool // providers take it as it is
}

func formats() map[string]format {
	return map[string]format{
		"image/png":  {png.DecodeConfig, png.Decode, true},
		"image/jpeg": {jpeg.DecodeConfig, jpeg.Decode, true},
		"image/gif":  {gif.DecodeConfig, gif.Decode, false}, // may be animated
		"image/webp": {webp.DecodeConfig, webp.Decode, true},
	}
}

func affordable(data []byte, kind string, head image.Config) error {
	pixels := int64(head.Width) * int64(head.Height)
	each := int64(4) // bytes
	switch head.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model:
		each = 8
	case color.GrayModel:
		each = 1
	}
	if kind == "image/jpeg" {
		if bytes.Count(data, []byte{0xFF, 0xDA}) > maxScans {
			return fmt.Errorf("%w: it takes too long to decode", ErrNoPicture)
		}
		if bytes.Contains(data, []byte{0xFF, 0xC2}) { // progressive: all coefficients are kept
			each += 12
		}
	}
	if kind == "image/png" && pixels/8 > int64(len(data))*maxDeflate {
		return fmt.Errorf("%w: it is broken", ErrNoPicture) // it cannot hold that many, and the decoder would ask for their memory first
	}
	if pixels > MaxPixels || pixels*each > maxDecoded {
		return fmt.Errorf("%w: it has too many pixels, %d by %d", ErrNoPicture, head.Width, head.Height)
	}
	return nil
}

// safely calls a decoder; none should panic, but the input is untrusted.
func safely[T any](decode func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = ErrNoPicture
		}
	}()
	return decode()
}

// scaled returns m with sides of at most side pixels. Each pixel is the mean of
// those it stands for, which are read by stripes, so that no second picture of
// the old size is needed.
func scaled(m image.Image, side int) image.Image {
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	if max(w, h) <= side {
		return m
	}
	width, height := max(1, w*side/max(w, h)), max(1, h*side/max(w, h))
	out := image.NewRGBA(image.Rect(0, 0, width, height))
	stripe := image.NewRGBA(image.Rect(0, 0, w, h/height+2))
	for y := range height {
		top, bottom := y*h/height, ((y+1)*h+height-1)/height
		rows := stripe.SubImage(image.Rect(0, 0, w, bottom-top)).(*image.RGBA)
		draw.Draw(rows, rows.Bounds(), m, image.Pt(b.Min.X, b.Min.Y+top), draw.Src)
		for x := range width {
			left, right := x*w/width, ((x+1)*w+width-1)/width
			mean(out.Pix[out.PixOffset(x, y):][:4], rows, left, right, bottom-top)
		}
	}
	return out
}

// mean sets to to the colour of the columns from left to right of a stripe.
func mean(to []byte, rows *image.RGBA, left, right, height int) {
	var sum [4]uint64
	for y := range height {
		for p := rows.Pix[y*rows.Stride+4*left : y*rows.Stride+4*right]; len(p) >= 4; p = p[4:] {
			for i := range sum {
				sum[i] += uint64(p[i])
			}
		}
	}
	n := uint64((right - left) * height)
	for i, s := range sum {
		to[i] = byte((s + n/2) / n)
	}
}

// encoded writes m as JPEG, or as PNG where that is wanted and small enough.
func encoded(m image.Image, photo bool) (Image, error) {
	var b bytes.Buffer
	if !photo {
		if err := png.Encode(&b, m); err != nil {
			return Image{}, fmt.Errorf("%w: %w", ErrNoPicture, err)
		}
		if b.Len() <= maxShown {
			return Image{MIMEType: "image/png", Data: b.Bytes()}, nil
		}
		b.Reset()
		white := image.NewRGBA(m.Bounds())
		draw.Draw(white, white.Bounds(), image.White, image.Point{}, draw.Src)
		draw.Draw(white, white.Bounds(), m, m.Bounds().Min, draw.Over)
		m = white
	}
	for _, quality := range [...]int{88, 60, 30} {
		b.Reset()
		if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: quality}); err != nil {
			return Image{}, fmt.Errorf("%w: %w", ErrNoPicture, err)
		}
		if b.Len() <= maxShown {
			return Image{MIMEType: "image/jpeg", Data: b.Bytes()}, nil
		}
	}
	return Image{}, fmt.Errorf("%w: it stays too large", ErrNoPicture)
}
