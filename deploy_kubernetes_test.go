package claybot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// kubeFiles are the manifests: the members, a database to try them out, the migration, and
// the monitoring.
var kubeFiles = []string{"deploy/kubernetes.yaml", "deploy/postgres.yaml", "deploy/migrate.yaml", "deploy/monitoring.yaml"}

// The kinds of kubeFiles with the fields that they use, by the API of Kubernetes 1.30:
// apps/v1, batch/v1, v1, policy/v1, networking.k8s.io/v1; and by that of the Prometheus
// Operator: monitoring.coreos.com/v1.
type (
	kubeLabels map[string]string

	kubeMeta struct {
		Name, Namespace     string
		Labels, Annotations kubeLabels
	}

	kubeHead struct {
		APIVersion string `json:"apiVersion"`
		Kind       string
		Metadata   kubeMeta
	}

	kubeSelector struct {
		MatchLabels kubeLabels
	}

	kubeData struct {
		kubeHead
		Type       string
		Data       map[string]string
		StringData map[string]string
	}

	kubePort struct {
		Name, Protocol, TargetPort string
		Port, ContainerPort        int
	}

	kubeService struct {
		kubeHead
		Spec struct {
			ClusterIP                string
			PublishNotReadyAddresses bool
			Selector                 kubeLabels
			Ports                    []kubePort
		}
	}

	kubeProbe struct {
		Exec                                            struct{ Command []string }
		PeriodSeconds, TimeoutSeconds, FailureThreshold int
	}

	kubeContainer struct {
		Name, Image string
		Args        []string
		Ports       []kubePort
		Env         []struct {
			Name, Value string
			ValueFrom   struct {
				FieldRef                      struct{ FieldPath string }
				SecretKeyRef, ConfigMapKeyRef struct {
					Name, Key string
					Optional  bool
				}
			}
		}
		StartupProbe, LivenessProbe, ReadinessProbe *kubeProbe
		Resources                                   struct{ Requests, Limits map[string]string }
		SecurityContext                             struct {
			AllowPrivilegeEscalation *bool
			ReadOnlyRootFilesystem   bool
			Capabilities             struct{ Drop []string }
		}
		VolumeMounts []struct {
			Name, MountPath string
			ReadOnly        bool
		}
	}

	kubePod struct {
		RestartPolicy                 string
		TerminationGracePeriodSeconds int
		AutomountServiceAccountToken  *bool
		EnableServiceLinks            *bool
		SecurityContext               struct {
			RunAsNonRoot          bool
			RunAsUser, RunAsGroup int
			FSGroup               int `json:"fsGroup"`
			SeccompProfile        struct{ Type string }
		}
		TopologySpreadConstraints []struct {
			MaxSkew                        int
			TopologyKey, WhenUnsatisfiable string
			LabelSelector                  kubeSelector
		}
		Containers []kubeContainer
		Volumes    []struct {
			Name      string
			ConfigMap struct{ Name string }
			EmptyDir  *struct{}
		}
	}

	kubeSet struct {
		kubeHead
		Spec struct {
			ServiceName, PodManagementPolicy string
			Replicas                         int
			UpdateStrategy                   struct{ Type string }
			Selector                         kubeSelector
			Template                         struct {
				Metadata kubeMeta
				Spec     kubePod
			}
			VolumeClaimTemplates []struct {
				Metadata kubeMeta
				Spec     struct {
					AccessModes []string
					Resources   struct{ Requests map[string]string }
				}
			}
		}
	}

	kubeJob struct {
		kubeHead
		Spec struct {
			BackoffLimit            int
			TTLSecondsAfterFinished int `json:"ttlSecondsAfterFinished"`
			Template                struct {
				Metadata kubeMeta
				Spec     kubePod
			}
		}
	}

	kubeBudget struct {
		kubeHead
		Spec struct {
			MaxUnavailable int
			Selector       kubeSelector
		}
	}

	kubePeer struct {
		PodSelector, NamespaceSelector kubeSelector
	}

	kubePolicy struct {
		kubeHead
		Spec struct {
			PodSelector kubeSelector
			PolicyTypes []string
			Ingress     []struct {
				From  []kubePeer
				Ports []kubePort
			}
		}
	}

	kubeMonitor struct {
		kubeHead
		Spec struct {
			Selector            kubeSelector
			PodMetricsEndpoints []struct{ Port, Interval string }
		}
	}

	kubeRules struct {
		kubeHead
		Spec struct {
			Groups []struct {
				Name  string
				Rules []struct {
					Alert, Expr, For    string
					Labels, Annotations kubeLabels
				}
			}
		}
	}

	kubeIngress struct {
		kubeHead
		Spec struct {
			IngressClassName string
			TLS              []struct {
				Hosts      []string
				SecretName string
			}
			Rules []struct {
				Host string
				HTTP struct {
					Paths []struct {
						Path, PathType string
						Backend        struct {
							Service struct {
								Name string
								Port struct{ Name string }
							}
						}
					}
				}
			}
		}
	}
)

// A kube is what kubeFiles have.
type kube struct {
	namespaces []kubeData
	secrets    []kubeData
	settings   []kubeData
	services   []kubeService
	sets       []kubeSet
	jobs       []kubeJob
	budgets    []kubeBudget
	policies   []kubePolicy
	ingresses  []kubeIngress
	monitors   []kubeMonitor
	rules      []kubeRules
}

// readKube reads the manifests. A field that is not in the types above is an error,
// as it is for kubectl.
func readKube(t *testing.T) *kube {
	t.Helper()
	k := new(kube)
	for _, file := range kubeFiles {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var node yaml.Node
			if err := documents.Decode(&node); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(file, err)
			}
			k.read(t, &node)
		}
	}
	return k
}

// read adds a document.
func (k *kube) read(t *testing.T, node *yaml.Node) {
	t.Helper()
	var head kubeHead
	into(t, node, &head)
	switch head.APIVersion + " " + head.Kind {
	case "v1 Namespace":
		add(t, node, &k.namespaces)
	case "v1 Secret":
		add(t, node, &k.secrets)
	case "v1 ConfigMap":
		add(t, node, &k.settings)
	case "v1 Service":
		add(t, node, &k.services)
	case "apps/v1 StatefulSet":
		add(t, node, &k.sets)
	case "batch/v1 Job":
		add(t, node, &k.jobs)
	case "policy/v1 PodDisruptionBudget":
		add(t, node, &k.budgets)
	case "networking.k8s.io/v1 NetworkPolicy":
		add(t, node, &k.policies)
	case "networking.k8s.io/v1 Ingress":
		add(t, node, &k.ingresses)
	case "monitoring.coreos.com/v1 PodMonitor":
		add(t, node, &k.monitors)
	case "monitoring.coreos.com/v1 PrometheusRule":
		add(t, node, &k.rules)
	default:
		t.Errorf("%s %s is not known", head.APIVersion, head.Kind)
	}
	if head.Kind != "Namespace" && head.Metadata.Namespace != "claybot" {
		t.Errorf("%s %s is in the namespace %q", head.Kind, head.Metadata.Name, head.Metadata.Namespace)
	}
}

func add[T any](t *testing.T, node *yaml.Node, list *[]T) {
	t.Helper()
	var one T
	unknown(t, node, reflect.TypeFor[T](), reflect.TypeFor[T]().Name())
	into(t, node, &one)
	*list = append(*list, one)
}

// into decodes a document by the rules of JSON, which is what a cluster is sent.
func into(t *testing.T, node *yaml.Node, v any) {
	t.Helper()
	var tree any
	err := node.Decode(&tree)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(tree); err == nil {
			err = json.Unmarshal(text, v)
		}
	}
	if err != nil {
		t.Errorf("line %d: %v", node.Line, err)
	}
}

// unknown reports the fields of a document that a type does not have, by letter.
func unknown(t *testing.T, node *yaml.Node, in reflect.Type, path string) {
	t.Helper()
	for in.Kind() == reflect.Pointer {
		in = in.Elem()
	}
	switch {
	case node.Kind == yaml.DocumentNode:
		unknown(t, node.Content[0], in, path)
	case node.Kind == yaml.SequenceNode && in.Kind() == reflect.Slice:
		for _, item := range node.Content {
			unknown(t, item, in.Elem(), path+"[]")
		}
	case node.Kind == yaml.MappingNode && in.Kind() == reflect.Struct:
		fields := fieldsOf(in)
		for i := 0; i < len(node.Content); i += 2 {
			name := node.Content[i].Value
			field, ok := fields[name]
			if !ok {
				t.Errorf("line %d: %s has no field %s", node.Content[i].Line, path, name)
				continue
			}
			unknown(t, node.Content[i+1], field, path+"."+name)
		}
	}
}

// fieldsOf are the fields of a type by their names in JSON.
func fieldsOf(in reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type)
	for _, f := range reflect.VisibleFields(in) {
		name := f.Tag.Get("json")
		if name == "" {
			name = strings.ToLower(f.Name[:1]) + f.Name[1:]
		}
		if strings.ToUpper(f.Name) == f.Name {
			name = strings.ToLower(f.Name)
		}
		if !f.Anonymous {
			fields[name] = f.Type
		}
	}
	return fields
}

// has reports whether pods with labels are selected.
func (s kubeLabels) has(pods kubeLabels) bool {
	for k, v := range s {
		if pods[k] != v {
			return false
		}
	}
	return len(s) > 0
}

func TestKubernetes(t *testing.T) {
	k := readKube(t)
	if len(k.namespaces) != 1 || len(k.sets) != 2 || len(k.budgets) != 1 || len(k.ingresses) != 1 || len(k.secrets) != 2 || len(k.settings) != 1 || len(k.jobs) != 1 {
		t.Fatalf("%d namespaces, %d sets, %d budgets, %d ingresses, %d secrets, %d maps of settings, %d jobs",
			len(k.namespaces), len(k.sets), len(k.budgets), len(k.ingresses), len(k.secrets), len(k.settings), len(k.jobs))
	}
	for _, set := range k.sets {
		k.checkSet(t, set)
	}
	for _, selector := range k.selectors() {
		if !slices.ContainsFunc(k.sets, func(s kubeSet) bool { return selector.has(s.Spec.Template.Metadata.Labels) }) {
			t.Errorf("nothing has the labels %v", selector)
		}
	}
	nodes := k.sets[0]
	if nodes.Metadata.Name != "claybot" || nodes.Spec.Replicas != 3 || !k.budgets[0].Spec.Selector.MatchLabels.has(nodes.Spec.Template.Metadata.Labels) {
		t.Errorf("the nodes are %d of %s", nodes.Spec.Replicas, nodes.Metadata.Name)
	}
	if grace := time.Duration(nodes.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second; grace <= runGrace {
		t.Errorf("a node is killed after %v; its end may take %v", grace, runGrace)
	}
	k.checkNode(t, nodes.Spec.Template.Spec.Containers[0])
	k.checkJob(t, k.jobs[0])
	k.checkStorageURL(t)
	c := checkSettings(t, "the ConfigMap", k.settings[0].Data["claybot.yaml"])
	host := k.ingresses[0].Spec.Rules[0].Host
	if !slices.Contains(c.HTTP.Hosts, host) || !slices.Contains(k.ingresses[0].Spec.TLS[0].Hosts, host) {
		t.Errorf("people see %s; the nodes know %v, the certificate %v", host, c.HTTP.Hosts, k.ingresses[0].Spec.TLS[0].Hosts)
	}
	// The page of a member that is not ready says why.
	if to := k.ingresses[0].Spec.Rules[0].HTTP.Paths[0].Backend.Service.Name; !slices.ContainsFunc(k.services, func(s kubeService) bool { return s.Metadata.Name == to && s.Spec.PublishNotReadyAddresses }) {
		t.Errorf("the Ingress does not lead to a service %s with the members that are not ready", to)
	}
}

// selectors are all that must select a pod.
func (k *kube) selectors() (all []kubeLabels) {
	for _, s := range k.services {
		all = append(all, s.Spec.Selector)
	}
	for _, b := range k.budgets {
		all = append(all, b.Spec.Selector.MatchLabels)
	}
	for _, p := range k.policies {
		all = append(all, p.Spec.PodSelector.MatchLabels)
	}
	for _, m := range k.monitors {
		all = append(all, m.Spec.Selector.MatchLabels)
	}
	return all
}

// checkSet checks what holds for nodes and the database.
func (k *kube) checkSet(t *testing.T, set kubeSet) {
	t.Helper()
	name, pod := set.Metadata.Name, set.Spec.Template.Spec
	if !set.Spec.Selector.MatchLabels.has(set.Spec.Template.Metadata.Labels) {
		t.Errorf("%s does not select its own pods", name)
	}
	if !slices.ContainsFunc(k.services, func(s kubeService) bool { return s.Metadata.Name == set.Spec.ServiceName && s.Spec.ClusterIP == "None" }) {
		t.Errorf("%s has no service %s of its own", name, set.Spec.ServiceName)
	}
	var claims []string
	for _, v := range set.Spec.VolumeClaimTemplates {
		claims = append(claims, v.Metadata.Name)
	}
	k.checkPod(t, name, pod, claims)
}

// checkPod checks what holds for the pods of sets and jobs.
func (k *kube) checkPod(t *testing.T, name string, pod kubePod, volumes []string) {
	t.Helper()
	if !pod.SecurityContext.RunAsNonRoot || pod.SecurityContext.RunAsUser == 0 || pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("%s may run as root: %+v", name, pod.SecurityContext)
	}
	for _, v := range pod.Volumes {
		volumes = append(volumes, v.Name)
		if v.ConfigMap.Name != "" && v.ConfigMap.Name != k.settings[0].Metadata.Name {
			t.Errorf("%s: no settings %s", name, v.ConfigMap.Name)
		}
	}
	for _, c := range pod.Containers {
		if c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") {
			t.Errorf("%s may get more rights", name)
		}
		for _, v := range c.VolumeMounts {
			if !slices.Contains(volumes, v.Name) {
				t.Errorf("%s: no volume %s", name, v.Name)
			}
		}
		k.checkEnv(t, name, c)
	}
}

func (k *kube) checkEnv(t *testing.T, name string, c kubeContainer) {
	t.Helper()
	for _, e := range c.Env {
		// An address that is set to nothing is not one that is not set.
		if ref := e.ValueFrom.ConfigMapKeyRef; strings.HasSuffix(e.Name, "_URL") && (e.Value == "" && ref.Name+e.ValueFrom.SecretKeyRef.Name == "" || ref.Name != "" && !ref.Optional) {
			t.Errorf("%s: %s may be set to nothing", name, e.Name)
		}
		ref := e.ValueFrom.SecretKeyRef
		if ref.Name == "" {
			continue
		}
		i := slices.IndexFunc(k.secrets, func(s kubeData) bool { return s.Metadata.Name == ref.Name })
		if i < 0 {
			t.Errorf("%s: no secret %s for %s", name, ref.Name, e.Name)
			continue
		}
		value, ok := k.secrets[i].StringData[ref.Key]
		if !ok {
			t.Errorf("%s: no secret %s of %s for %s", name, ref.Key, ref.Name, e.Name)
		}
		// A Secret that is made by other means need not have optional keys.
		if ref.Optional != (value == "") {
			t.Errorf("%s: %s is optional: %v; the secret %s is empty: %v", name, e.Name, ref.Optional, ref.Key, value == "")
		}
	}
}

// checkNode checks the container of a node.
func (k *kube) checkNode(t *testing.T, c kubeContainer) {
	t.Helper()
	names := make(map[string]bool)
	for _, e := range c.Env {
		names[e.Name] = true
	}
	checkVariables(t, "the StatefulSet", slices.Sorted(maps.Keys(names)))
	for command, probe := range map[string]*kubeProbe{"claybot healthcheck": c.LivenessProbe, "claybot healthcheck --ready": c.ReadinessProbe} {
		if probe == nil || strings.Join(probe.Exec.Command, " ") != command {
			t.Errorf("the probe is %+v, want %q", probe, command)
		}
	}
	for name, value := range k.secrets[0].StringData {
		if value != "" && !strings.Contains(value, "change-me") {
			t.Errorf("the secret %s has a value", name)
		}
	}
}
