package configs

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/claybot/claybot"
	"github.com/claybot/claybot/platforms"
)

// A setter reads the value of a key into the struct that to points to. A value that is
// not valid is a warning and leaves the struct as it was.
type setter func(r *reader, at place, n *yaml.Node, k key, to any)

// one makes a setter of a single value.
func one[V any](parse func(string) (V, error)) setter {
	return func(r *reader, at place, n *yaml.Node, k key, to any) {
		text, ok := r.scalar(at, n)
		if !ok {
			return
		}
		if v, err := parse(text); err != nil {
			r.refuse(at, err)
		} else {
			*k.field(to).(*V) = v
		}
	}
}

// each makes a setter of a list, which leaves out the entries that are not valid and
// those that are there already.
func each[V comparable](parse func(string) (V, error)) setter {
	return func(r *reader, at place, n *yaml.Node, k key, to any) {
		if items, ok := r.list(at, n); ok {
			*k.field(to).(*[]V) = valid(r, items, parse)
		}
	}
}

// eachOf is each for values that may name a connector.
func eachOf[V comparable](parse func(in platforms.Instances, v string) (V, error)) setter {
	return func(r *reader, at place, n *yaml.Node, k key, to any) {
		each(func(v string) (V, error) { return parse(r.instances, v) })(r, at, n, k, to)
	}
}

// every is each that keeps values which are there several times.
func every[V any](parse func(string) (V, error)) setter {
	return into(func(r *reader, at place, n *yaml.Node, list *[]V) {
		items, _ := r.list(at, n)
		*list = nil
		for _, it := range items {
			if v, err := parse(it.text); err != nil {
				r.refuse(it.at, err)
			} else {
				*list = append(*list, v)
			}
		}
	})
}

// valid returns what the items say that are valid, each once. It warns of the others.
func valid[V comparable](r *reader, items []item, parse func(string) (V, error)) []V {
	list := []V{}
	for _, it := range items {
		if v, err := parse(it.text); err != nil {
			r.refuse(it.at, err)
		} else if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// into makes a setter of a function that stores into the field of the key.
func into[V any](set func(r *reader, at place, n *yaml.Node, field *V)) setter {
	return func(r *reader, at place, n *yaml.Node, k key, to any) { set(r, at, n, k.field(to).(*V)) }
}

// owned makes a setter of a function that stores into the struct.
func owned[T any](set func(r *reader, at place, n *yaml.Node, to *T)) setter {
	return func(r *reader, at place, n *yaml.Node, _ key, to any) { set(r, at, n, to.(*T)) }
}

// text is owned for a single value.
func text[T any](set func(r *reader, at place, v string, to *T)) setter {
	return owned(func(r *reader, at place, n *yaml.Node, to *T) {
		if v, ok := r.scalar(at, n); ok {
			set(r, at, v, to)
		}
	})
}

// setterOf returns how the value of a key is read.
func setterOf(k key) setter {
	for _, kinds := range []func(key) setter{valueKind, listKind, groupKind, profileKind, flowKind} {
		if set := kinds(k); set != nil {
			return set
		}
	}
	switch reflect.New(k.typ).Interface().(type) {
	case *bool:
		return one(k.truth)
	case **bool:
		return one(func(v string) (*bool, error) { yes, err := k.truth(v); return &yes, err })
	case *string:
		return one(k.word)
	case *int:
		return one(k.number)
	case **int:
		return one(func(v string) (*int, error) { n, err := k.number(v); return &n, err })
	case *int64:
		return one(func(v string) (int64, error) { n, err := k.number(v); return int64(n), err })
	case *float64:
		return one(k.decimal)
	case *time.Duration:
		return one(k.duration)
	case **time.Location:
		return one(zone)
	case *Secret:
		return into(func(r *reader, at place, n *yaml.Node, s *Secret) {
			if v, ok := r.scalar(at, n); ok {
				*s = r.reference(at, v)
			}
		})
	default:
		return func(r *reader, at place, n *yaml.Node, k key, to any) { r.group(at, n, k.field(to)) }
	}
}

// valueKind has the kinds of single values.
func valueKind(k key) setter {
	if f, ok := forms[k.kind]; ok {
		return one(f.parse)
	}
	switch k.kind {
	case "url":
		return one(address)
	case "url without slash":
		return one(func(v string) (string, error) { u, err := address(v); return strings.TrimRight(u, "/"), err })
	case "url with slash":
		return one(func(v string) (string, error) { u, err := address(v); return strings.TrimRight(u, "/") + "/", err })
	case "path":
		return into(func(r *reader, at place, n *yaml.Node, s *string) {
			if v, ok := r.scalar(at, n); ok {
				*s = r.path(v)
			}
		})
	case "directory":
		return into(func(r *reader, at place, n *yaml.Node, s *string) {
			v, ok := r.scalar(at, n)
			if store(s, v, ok); ok && v == "" {
				r.warn(at, noValue+"; ignored")
			}
		})
	case "level":
		return one(func(v string) (level slog.Level, err error) {
			word, err := oneOf(strings.ToLower(v), "debug", "info", "warn", "error")
			if err == nil {
				err = level.UnmarshalText([]byte(word))
			}
			return level, err
		})
	case "listen":
		return one(listen)
	case "model":
		return into(setModel)
	case "model name":
		return one(modelName)
	case "hours":
		return one(activeHours)
	case "route":
		return func(r *reader, at place, n *yaml.Node, k key, to any) {
			one(func(v string) (string, error) { return parseRoute(r.instances, v) })(r, at, n, k, to)
		}
	case "micro-USD":
		return one(k.microUSD)
	case "milliseconds":
		return one(func(v string) (time.Duration, error) {
			n, err := k.number(v)
			return time.Duration(n) * time.Millisecond, err
		})
	case "time of day":
		return one(timeOfDay)
	case "size":
		return one(k.size)
	case "bytes":
		return one(bytesOf)
	}
	return nil
}

func timeOfDay(v string) (string, error) {
	if _, err := time.Parse("15:04", v); err != nil {
		return "", fmt.Errorf("%s is not a time of day such as 03:30", quote(v))
	}
	return v, nil
}

// listKind has the kinds of lists of single values.
func listKind(k key) setter {
	switch k.kind {
	case "hosts":
		return each(browserHost)
	case "networks":
		return each(network)
	case "allowed":
		return eachOf(parseAllowed)
	case "people":
		return eachOf(parseOwner)
	case "tool patterns":
		return each(glob)
	case "emoji list":
		return each(forms["emoji"].parse)
	case "scopes":
		return each(forms["scope"].parse)
	case "words":
		return every(argument)
	case "MCP tool patterns":
		return each(mcpPattern)
	case "MCP hosts":
		return each(hostPattern("api.example.org, *.example.org or api.example.org:8443"))
	case "chats":
		return eachOf(parseChat)
	case "model names":
		return each(modelName)
	case "explored hosts":
		return each(hostPattern("shop.example.org, localhost:3000 or *.example.org"))
	case "private hosts":
		return each(privatePair)
	case "public hosts":
		return each(webHost)
	case "workspace hosts":
		return each(func(v string) (string, error) { return forms["host"].parse(strings.ToLower(v)) })
	case "protections":
		return every(func(v string) (string, error) {
			if !slices.Contains(Protections(), v) {
				return "", fmt.Errorf("%s is not the name of a protection, which are %s", quote(v), strings.Join(Protections(), ", "))
			}
			return v, nil
		})
	case "texts":
		return every(func(v string) (string, error) { return v, nil })
	}
	return nil
}

// groupKind returns the setter for a kind of group, list of groups or named values.
func groupKind(k key) setter {
	switch k.kind {
	case "http":
		return into(setHTTP)
	case "access":
		return into(setAccess)
	case "instances":
		return owned(setInstances)
	case "people by name":
		return owned(setPeople)
	case "model address":
		return text(setModelAddress)
	case "model key":
		return text(setModelKey)
	case "model keys":
		return owned(setKeys)
	case "model headers":
		return owned(setModelHeaders)
	case "prices":
		return owned(setPrices)
	case "price":
		return one(price)
	case "fallback":
		return owned(setFallback)
	case "transcription":
		return into(setTranscription)
	case "account":
		return text(func(r *reader, at place, v string, t *Transcription) { t.Key = readAccount(r, at, v, t) })
	case "speech":
		return into(setSpeech)
	case "speech account":
		return text(func(r *reader, at place, v string, s *Speech) { s.Key = readAccount(r, at, v, s) })
	case "prompt variables": // which of them hold secrets is known at the end of the file
		return owned(func(r *reader, at place, n *yaml.Node, _ *Prompts) { r.promptEnv, _ = r.list(at, n) })
	case "budgets":
		return owned(setBudgets)
	case "fetch":
		return owned(setFetch)
	case "search":
		return owned(setSearch)
	case "relay":
		return into(setRelay)
	case "pprof":
		return one(func(v string) (bool, error) {
			if v == "1" || v == "0" { // how variables are often set
				return v == "1", nil
			}
			return k.truth(v)
		})
	case "headers":
		return into(setHeaders)
	case "OTLP headers":
		return owned(func(r *reader, at place, n *yaml.Node, o *OTLP) {
			before := len(r.warnings)
			setHeaders(r, at, n, &o.Headers)
			r.sealAll(o, at.path, before)
		})
	}
	return storeKind(k)
}

// storeKind has the kinds of the stores, of workspaces and of MCP servers.
func storeKind(k key) setter {
	switch k.kind {
	case "storage":
		return into(setStorage)
	case "files":
		return into(setFiles)
	case "files address":
		return text(func(r *reader, at place, v string, f *Files) { readFilesURL(r, at, v, f) })
	case "workspace":
		return into(setWorkspace)
	case "network":
		return owned(setNetwork)
	case "image or off":
		return one(imageOrOff)
	case "workspace variables":
		return into(setWorkspaceEnv)
	case "no secret":
		return one(noSecret)
	case "volumes":
		return into(setVolumes)
	case "mcp":
		return owned(setMCP)
	case "variables":
		return into(setVariables)
	case "secret variables":
		return into(setSecretVariables)
	case "MCP tools":
		return owned(setMCPTools)
	case "effects":
		return into(setEffects)
	case "OAuth":
		return into(setOAuth)
	case "file path":
		return into(func(r *reader, at place, n *yaml.Node, s *string) {
			if v, ok := r.scalar(at, n); !ok {
				return
			} else if name, err := forms["file"].parse(v); err != nil {
				r.refuse(at, err)
			} else {
				*s = r.path(name)
			}
		})
	}
	return nil
}

// profileKind has the kinds of the keys of profiles.
func profileKind(k key) setter {
	switch k.kind {
	case "profiles":
		return owned(setProfiles)
	case "match list":
		return owned(setMatch)
	case "system fallback":
		return owned(func(r *reader, at place, n *yaml.Node, p *draft) {
			k, _ := keyAt("model.system_fallback")
			setterOf(k)(r, at, n, k, &p.Model)
		})
	case "window":
		return text(setWindow)
	case "longest debounce":
		return text(setLongestDebounce)
	case "memory":
		return text(setMemory)
	case "tools":
		return into(setTools)
	case "tool groups":
		return owned(setGroups)
	case "profile tools":
		return owned(setProfileTools)
	case "deep":
		return owned(setDeep)
	case "subagents":
		return into(setHelpers)
	case "explore":
		return owned(setExplore)
	case "plan":
		return owned(setPlan)
	case "intents":
		return into(setIntents)
	case "inputs":
		return into(setInputs)
	case "question type":
		return one(func(v string) (claybot.QuestionType, error) { return claybot.QuestionType(v), nil })
	case "number":
		return one(anyNumber)
	case "denied tools":
		return owned(func(r *reader, at place, n *yaml.Node, p *planDraft) { p.Deny = readRules(r, "deny", at, n) })
	case "quiet hours":
		return text(setQuietHours)
	case "quiet":
		return text(setQuiet)
	case "rates":
		return into(setRates)
	case "approve":
		return owned(setApprove)
	case "confirm":
		return owned(setConfirm)
	case "allow":
		return owned(setAllow)
	case "approvals":
		return owned(setApprovals)
	}
	return notesKind(k)
}

// notesKind has the kinds of notes, skills, texts and the browser.
func notesKind(k key) setter {
	switch k.kind {
	case "notes":
		return text(setNotes)
	case "global notes":
		return into(func(r *reader, at place, n *yaml.Node, global *bool) {
			*global = false // a value that is not valid means the narrow one
			key{words: "write,read", index: k.index}.readTruth(r, at, n, global)
		})
	case "skills":
		return into(setSkills)
	case "own texts":
		return into(setTexts)
	case "browser":
		return owned(func(r *reader, at place, n *yaml.Node, p *draft) {
			key{words: "on,off"}.readTruth(r, at, n, &p.Workspace.Browser)
		})
	}
	return nil
}

// readTruth stores what truth says.
func (k key) readTruth(r *reader, at place, n *yaml.Node, to *bool) {
	v, ok := r.scalar(at, n)
	if !ok {
		return
	}
	if yes, err := k.truth(v); err != nil {
		r.refuse(at, err)
	} else {
		*to = yes
	}
}
