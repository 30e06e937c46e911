package scripted

import (
	"bytes"
	"hash/fnv"
	"image"
	"image/color"
	"image/draw"
	"image/png"

	"github.com/claybot/claybot/devices"
)

// picture draws a screen as a sketch: a bar for the title, and one for each
// action, in a colour of its kind.
func picture(s Screen) []byte {
	const width, height, edge = 240, 160, 12
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{
		color.White,
		color.Gray{0x60},
		color.Gray{0xd8},
		color.RGBA{0x2b, 0x6c, 0xb0, 0xff},
		color.RGBA{0x2f, 0x85, 0x5a, 0xff},
		color.RGBA{0xb8, 0x5c, 0x1f, 0xff},
	})
	bar := func(x, y, w, h, colour int) {
		draw.Draw(img, image.Rect(x, y, x+w, y+h), image.NewUniform(img.Palette[colour]), image.Point{}, draw.Src)
	}
	bar(0, 0, width, 26, 1)
	bar(edge, 9, min(8*len(s.Title), width-2*edge), 8, 2)
	y := 38
	for _, step := range s.Steps {
		colour := 3
		switch {
		case step.Once:
			colour = 5
		case step.Kind == devices.Type || step.Kind == devices.Select:
			colour = 4
		}
		bar(edge, y, min(20+8*len(step.Label), width-2*edge), 9, colour)
		if y += 16; y > height-edge {
			break
		}
	}
	for i := range int(width / 8) { // a line that tells texts apart
		h := fnv.New32a()
		_, _ = h.Write([]byte{byte(i)}) // never fails
		_, _ = h.Write([]byte(s.Text))
		bar(i*8, height-6, 6, 4, 1+int(h.Sum32()%2))
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil { // a buffer takes everything
		return nil
	}
	return b.Bytes()
}
