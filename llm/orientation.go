package llm

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/draw"
)

// orientation reads from the EXIF data of a JPEG how it was held: 1 to 8; 1 when
// nothing says so.
func orientation(data []byte) int {
	for at := 2; at+4 <= len(data) && data[at] == 0xFF; {
		marker, n := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == 0xDA || n < 2 || at+2+n > len(data) {
			return 1
		}
		if marker == 0xE1 {
			if tiff, ok := bytes.CutPrefix(data[at+4:at+2+n], []byte("Exif\x00\x00")); ok {
				return exifOrientation(tiff)
			}
		}
		at += 2 + n
	}
	return 1
}

func exifOrientation(tiff []byte) int {
	if len(tiff) < 8 {
		return 1
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 1
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			return 1
		}
		if order.Uint16(entries) == 0x0112 {
			if v := int(order.Uint16(entries[8:])); v >= 1 && v <= 8 {
				return v
			}
			return 1
		}
		entries = entries[12:]
	}
	return 1
}

// upright turns a picture the way it was held. It is scaled down first, as
// turning needs it a second time.
func upright(m image.Image, how int) image.Image {
	if how <= 1 || how > 8 {
		return m
	}
	m = scaled(m, MaxSide)
	b := m.Bounds()
	src, ok := m.(*image.RGBA)
	if !ok {
		src = image.NewRGBA(image.Rect(0, 0, b.Dx(), b.Dy()))
		draw.Draw(src, src.Bounds(), m, b.Min, draw.Src)
	}
	w, h := b.Dx(), b.Dy()
	size := image.Rect(0, 0, w, h)
	if how >= 5 {
		size = image.Rect(0, 0, h, w)
	}
	out := image.NewRGBA(size)
	for y := range h {
		for x := range w {
			to := turned(how, x, y, w, h)
			copy(out.Pix[out.PixOffset(to.X, to.Y):][:4], src.Pix[y*src.Stride+4*x:][:4])
		}
	}
	return out
}

// turned is where the pixel x, y of a picture of w by h pixels belongs.
func turned(how, x, y, w, h int) image.Point {
	switch how {
	case 2:
		return image.Pt(w-1-x, y)
	case 3:
		return image.Pt(w-1-x, h-1-y)
	case 4:
		return image.Pt(x, h-1-y)
	case 5:
		return image.Pt(y, x)
	case 6:
		return image.Pt(h-1-y, x)
	case 7:
		return image.Pt(h-1-y, w-1-x)
	case 8:
		return image.Pt(y, w-1-x)
	}
	return image.Pt(x, y)
}
