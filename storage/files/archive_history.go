package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/storage"
)

// records yields the lines of a history in the form of databases. An unreadable line
// becomes an unreadable record.
func (a *Archive) records(agent string, yield func(storage.Row) bool) (bool, error) {
	a.strangers(agent)
	f, err := a.fs.Open(a.folder(agent)+"/history.jsonl", os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if err := checkVersion(f, info.Size()); err != nil {
		return false, err
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(f, 0, info.Size()), chunk)
	for n := int64(0); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		whole, ended := bytes.CutSuffix(line, []byte("\n"))
		if len(bytes.TrimSpace(whole)) > 0 {
			body, crc, fault := recordOf(whole)
			if fault != nil && !ended {
				a.remark("agents/%s/history.jsonl ends with a line that was never finished, which is left out", agent)
				return true, nil
			}
			n++
			if !yield(storage.Row{agent, n, body, crc}) {
				return false, nil
			}
		}
		if err != nil {
			return true, nil
		}
	}
}

// damagedMember begins the line of a record that a line cannot have as it is.
const damagedMember = `{"damaged":`

// recordOf is the record that a line has. Of one that cannot be read the checksum is
// wrong: as it stands in the line, or, when there is none, the inverse of the right one.
func recordOf(line []byte) (body string, crc int64, fault error) {
	_, fault = decodeLine(line)
	at := len(line) - len(crcMember)
	stated, ok := statedCRC(line)
	if fault != nil && ok && bytes.HasPrefix(line, []byte(damagedMember)) {
		var d struct{ Damaged []byte }
		if json.Unmarshal(line, &d) == nil {
			return string(d.Damaged), int64(stated), fault
		}
	}
	if ok && !errors.Is(fault, errNoType) {
		return string(line[:at]) + "}", int64(stated), fault
	}
	sum := crc32.Checksum(line, castagnoli)
	if fault != nil {
		sum = ^sum
	}
	return string(line), int64(sum), fault
}

// statedCRC is the checksum that stands at the end of a line.
func statedCRC(line []byte) (uint32, bool) {
	at := len(line) - len(crcMember)
	if at < 1 || !bytes.HasPrefix(line[at:], []byte(crcMember[:8])) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return 0, false
	}
	digits := string(line[at+8 : at+16])
	n, err := strconv.ParseUint(digits, 16, 32)
	return uint32(n), err == nil && digits == strings.ToLower(digits) && digits[0] != '+'
}

// lineOf is the line of a record, without its newline, of which recordOf makes the same
// record again.
func lineOf(body string, crc int64) []byte {
	if crc < 0 || crc > 1<<32-1 {
		crc = int64(^crc32.Checksum([]byte(body), castagnoli)) // it is wrong anyway
	}
	fits := func(line []byte) bool {
		b, c, _ := recordOf(line)
		return b == body && c == crc
	}
	if !strings.Contains(body, "\n") && strings.TrimSpace(body) != "" {
		if rest, ok := strings.CutSuffix(body, "}"); ok && rest != "" {
			if line := fmt.Appendf(nil, `%s,"crc":"%08x"}`, rest, crc); fits(line) {
				return line
			}
		}
		if line := []byte(body); crc == int64(^crc32.Checksum(line, castagnoli)) && fits(line) {
			return line
		}
	}
	b, err := json.Marshal([]byte(body))
	if err != nil {
		panic(err) // bytes can be encoded
	}
	return fmt.Appendf(nil, `%s%s,"crc":"%08x"}`, damagedMember, b, crc)
}

// A historyFile is a history that is being written.
type historyFile struct {
	file File
	w    *bufio.Writer
}

func (a *Archive) loadRecord(r storage.Row) error {
	if agent := text(r[0]); agent != a.history.agent || a.history.file == nil {
		if err := a.closeHistory(); err != nil {
			return err
		}
		if claybot.AgentID(agent).Validate() != nil {
			return fmt.Errorf("invalid agent id %.40q", agent)
		}
		f, err := a.fs.Open(a.folder(agent)+"/history.jsonl", os.O_WRONLY|os.O_CREATE|os.O_APPEND)
		if err != nil {
			return err
		}
		a.history.agent, a.history.file = agent, &historyFile{f, bufio.NewWriterSize(f, chunk)}
	}
	w := a.history.file.w
	if _, err := w.Write(lineOf(text(r[2]), number(r[3]))); err != nil {
		return err
	}
	return w.WriteByte('\n')
}

func (a *Archive) closeHistory() error {
	h := a.history.file
	if h == nil {
		return nil
	}
	a.history.file = nil
	return errors.Join(h.w.Flush(), h.file.Close())
}

// Files implements storage.Portable.
func (a *Archive) Files(ctx context.Context, only string) iter.Seq2[storage.PortableFile, error] {
	return func(yield func(storage.PortableFile, error) bool) {
		for id, err := range a.ids(ctx, only) {
			if err != nil {
				yield(storage.PortableFile{}, err)
				return
			}
			dir := a.folder(id) + "/attachments"
			entries, err := a.fs.ReadDir(dir)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				yield(storage.PortableFile{}, err)
				return
			}
			for _, e := range entries {
				file, ok := strings.CutSuffix(e.Name(), ".json")
				if !ok || claybot.AgentID(file).Validate() != nil {
					continue
				}
				f, ok, err := a.attachment(id, dir, file)
				if !ok && err == nil {
					continue
				}
				if !yield(f, err) || err != nil {
					return
				}
			}
		}
	}
}

func (a *Archive) attachment(agent, dir, id string) (f storage.PortableFile, ok bool, err error) {
	reference, err := read(a.fs, dir+"/"+id+".json", referenceLimit)
	if err != nil {
		return f, false, err
	}
	if there, err := exists(a.fs, dir+"/"+id); err != nil || !there {
		a.remark("agents/%s/attachments/%s has no bytes any more, and is left out", agent, id)
		return f, false, err
	}
	return storage.PortableFile{Agent: agent, ID: id, Reference: string(reference), Open: func(context.Context) (io.ReadCloser, error) {
		file, err := a.fs.Open(dir+"/"+id, os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		return attachment{io.NewSectionReader(file, 0, 1<<62), file}, nil
	}}, true, nil
}

// LoadFile implements storage.Portable.
func (a *Archive) LoadFile(ctx context.Context, f storage.PortableFile) error {
	if claybot.AgentID(f.ID).Validate() != nil || claybot.AgentID(f.Agent).Validate() != nil { // parts of a path
		return fmt.Errorf("invalid file id %.64q", f.ID)
	}
	dir := a.folder(f.Agent) + "/attachments"
	if err := a.fs.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	content, err := f.Open(ctx)
	if err != nil {
		return err
	}
	file, err := a.fs.Open(dir+"/"+f.ID, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err == nil {
		_, err = io.Copy(file, content)
		err = errors.Join(err, file.Close())
	}
	err = errors.Join(err, content.Close())
	if err == nil {
		err = write(unsynced{a.fs}, dir+"/"+f.ID+".json", []byte(f.Reference))
	}
	return err
}
