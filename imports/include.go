package imports

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// Limits of files that include others.
const (
	includeKey   = "$include"
	maxIncludes  = 10  // of files within files
	mostIncluded = 200 // files in all
)

// Included reads a file of JSON5 with the files of the directory that its objects include, as OpenClaw does: the key
// $include has the path of a file, or a list of paths, relative to the file that includes it. What they hold stands in
// place of the object. The keys beside $include, and later files, are merged into it: objects by their keys, lists by
// appending, and of other values the last one counts. The error names the file, and the line of a mistake.
func (d *Dir) Included(name string) (Value, error) {
	in := &includer{dir: d, left: mostIncluded}
	v, err := in.file(name, nil)
	return Value{v}, err
}

type includer struct {
	dir  *Dir
	left int // files that may still be read
}

// file reads a file; within are those that include it, the outermost first.
func (in *includer) file(name string, within []string) (any, error) {
	if in.left--; in.left < 0 {
		return nil, fmt.Errorf("%s includes more than %d files", filepath.Join(in.dir.Path, within[0]), mostIncluded)
	}
	v, err := in.dir.JSON5(name)
	if err != nil {
		return nil, err
	}
	return in.resolve(v.v, append(slices.Clip(within), name))
}

// resolve returns a value with what it includes; the last of files is the one in which it stands.
func (in *includer) resolve(v any, files []string) (any, error) {
	switch x := v.(type) {
	case []any:
		for i := range x {
			var err error
			if x[i], err = in.resolve(x[i], files); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		named, includes := x[includeKey]
		delete(x, includeKey)
		for _, key := range slices.Sorted(maps.Keys(x)) {
			var err error
			if x[key], err = in.resolve(x[key], files); err != nil {
				return nil, err
			}
		}
		if includes {
			return in.include(named, x, files)
		}
	}
	return v, nil
}

// include returns what an object with $include stands for; rest are its other keys.
func (in *includer) include(named any, rest map[string]any, files []string) (any, error) {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("%s: %s: %w", filepath.Join(in.dir.Path, files[len(files)-1]), includeKey, fmt.Errorf(format, args...))
	}
	list, several := named.([]any)
	if !several {
		list = []any{named}
	}
	var all any
	if several {
		all = map[string]any{}
	}
	for _, one := range list {
		path, is := one.(string)
		if !is {
			return nil, wrong("want the path of a file, or a list of paths")
		}
		name, ok := in.dir.inside(filepath.Dir(files[len(files)-1]), path)
		switch {
		case !ok:
			return nil, wrong("%s is outside of the directory; copy it there, and import again", oneWord(path))
		case slices.Contains(files, name):
			return nil, wrong("%s includes itself", oneWord(path))
		case len(files) > maxIncludes:
			return nil, wrong("%s is included through more than %d files", oneWord(path), maxIncludes)
		}
		v, err := in.file(name, files)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = v
		} else {
			all = merged(all, v)
		}
	}
	if len(rest) == 0 {
		return all, nil
	}
	if _, object := all.(map[string]any); !object {
		return nil, wrong("there are keys beside it, and what it includes has none")
	}
	return merged(all, rest), nil
}

// inside returns the name within the directory of a path that is relative to one of its folders, or absolute.
func (d *Dir) inside(folder, path string) (string, bool) {
	if filepath.IsAbs(path) {
		relative, err := filepath.Rel(d.Path, path)
		return relative, err == nil && filepath.IsLocal(relative)
	}
	name := filepath.Join(folder, path)
	return name, filepath.IsLocal(name)
}

// merged returns a value with another one merged into it.
func merged(a, b any) any {
	switch x := a.(type) {
	case []any:
		if y, is := b.([]any); is {
			return slices.Concat(x, y)
		}
	case map[string]any:
		y, is := b.(map[string]any)
		if !is {
			break
		}
		all := maps.Clone(x)
		for key, v := range y {
			if was, there := all[key]; there {
				v = merged(was, v)
			}
			all[key] = v
		}
		return all
	}
	return b
}
