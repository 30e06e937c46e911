package claybot_test

import (
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A kustomization is what the base and the overlay of the docs use of Kustomize 5
// (kustomize.config.k8s.io/v1beta1).
type kustomization struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Resources  []string
	Images     []struct {
		Name    string
		NewName string `yaml:"newName"`
		NewTag  string `yaml:"newTag"`
	}
	Replicas []struct {
		Name  string
		Count int
	}
	Patches []struct {
		Target struct{ Kind, Name string }
		Patch  string
	}
}

// The base of Kustomize has the members, and the overlay that docs/scaling.md shows changes
// things that the base has: Kustomize refuses a patch whose target is missing, and ignores
// an image and a number of replicas that name nothing.
func TestKustomize(t *testing.T) {
	t.Parallel()
	base := readKustomization(t, readText(t, "deploy/kustomization.yaml"))
	documents := make(map[string]map[string]any) // by kind and name
	for _, file := range base.Resources {
		if file = path.Join("deploy", file); !slices.Contains(kubeFiles, file) {
			t.Errorf("%s is none of the manifests that are tested", file)
		}
		text := readText(t, file)
		for part := range strings.SplitSeq(text, "\n---\n") {
			var d map[string]any
			if err := yaml.Unmarshal([]byte(part), &d); err != nil {
				t.Fatal(file, err)
			}
			documents[nameOf(d)] = d
		}
		for _, image := range overlay(t).Images {
			if !strings.Contains(text, "image: "+image.Name+":") {
				t.Errorf("no container has the image %s", image.Name)
			}
		}
	}
	for _, r := range overlay(t).Replicas {
		if documents["StatefulSet "+r.Name] == nil {
			t.Errorf("there is no StatefulSet %s", r.Name)
		}
	}
	for i, p := range overlay(t).Patches {
		if p.Target.Kind == "" {
			var d map[string]any
			if err := yaml.Unmarshal([]byte(p.Patch), &d); err != nil || documents[nameOf(d)] == nil {
				t.Errorf("patch %d is of %q, which the base does not have, %v", i, nameOf(d), err)
			}
			continue
		}
		var steps []struct {
			Op, Path string
			Value    any
		}
		if err := yaml.Unmarshal([]byte(p.Patch), &steps); err != nil || len(steps) == 0 {
			t.Errorf("patch %d: %v", i, err)
		}
		for _, s := range steps {
			if old := at(documents[p.Target.Kind+" "+p.Target.Name], s.Path); s.Op != "replace" || old == nil {
				t.Errorf("patch %d: %s of %s, where %v stands", i, s.Op, s.Path, old)
			}
		}
	}
}

// overlay is the one that docs/scaling.md shows.
func overlay(t *testing.T) kustomization {
	t.Helper()
	_, text, _ := strings.Cut(readText(t, "docs/scaling.md"), "```yaml\n# overlay/kustomization.yaml\n")
	text, _, found := strings.Cut(text, "\n```")
	if !found {
		t.Fatal("docs/scaling.md shows no overlay")
	}
	return readKustomization(t, text)
}

func readKustomization(t *testing.T, text string) (k kustomization) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&k); err != nil || k.Kind != "Kustomization" || len(k.Resources) == 0 {
		t.Fatalf("%+v, %v", k, err)
	}
	return k
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// nameOf is the kind of a document and its name.
func nameOf(document map[string]any) string {
	kind, _ := document["kind"].(string)
	name, _ := at(document, "/metadata/name").(string)
	return kind + " " + name
}

// at is what a document has at a JSON Pointer (RFC 6901); nil for nothing.
func at(document any, pointer string) any {
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch d := document.(type) {
		case map[string]any:
			document = d[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(d) {
				return nil
			}
			document = d[i]
		default:
			return nil
		}
	}
	return document
}
