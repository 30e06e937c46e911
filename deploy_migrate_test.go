package claybot_test

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// checkJob checks the migration: it runs as a member does, gets no requests, and reaches
// the database.
func (k *kube) checkJob(t *testing.T, job kubeJob) {
	t.Helper()
	pod, node := job.Spec.Template.Spec, k.sets[0].Spec.Template.Spec
	k.checkPod(t, job.Metadata.Name, pod, nil)
	c, like := pod.Containers[0], node.Containers[0]
	if !slices.Equal(c.Args, []string{"migrate"}) || c.Image != like.Image || !reflect.DeepEqual(c.SecurityContext, like.SecurityContext) || !reflect.DeepEqual(pod.SecurityContext, node.SecurityContext) {
		t.Errorf("the job runs %v of %s, with %+v and %+v", c.Args, c.Image, c.SecurityContext, pod.SecurityContext)
	}
	for _, e := range c.Env {
		if !slices.Contains(like.Env, e) {
			t.Errorf("the members do not have the variable %+v", e)
		}
	}
	labels := job.Spec.Template.Metadata.Labels
	for _, selector := range k.selectors() {
		if selector.has(labels) {
			t.Errorf("%v selects the job", selector)
		}
	}
	for _, p := range k.policies {
		if p.Spec.PodSelector.MatchLabels["app"] != "postgres" {
			continue
		}
		for _, pods := range []kubeLabels{labels, k.sets[0].Spec.Template.Metadata.Labels} {
			if from := p.Spec.Ingress[0].From; !slices.ContainsFunc(from, func(f kubePeer) bool { return f.PodSelector.MatchLabels.has(pods) }) {
				t.Errorf("%v do not reach the database", pods)
			}
		}
	}
}

// checkStorageURL checks that the sample encrypts the connection to a database, and that
// the one to try it out with is named as it is.
func (k *kube) checkStorageURL(t *testing.T) {
	t.Helper()
	if u := k.secrets[0].StringData["storage-url"]; !strings.HasSuffix(u, "?sslmode=verify-full") {
		t.Errorf("the storage URL is %s", u)
	}
	text, err := os.ReadFile("deploy/postgres.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "storage-url: postgres://claybot:change-me@" + k.sets[1].Spec.ServiceName + ":5432/claybot?sslmode=disable"; !bytes.Contains(text, []byte(want)) {
		t.Errorf("deploy/postgres.yaml does not have %q", want)
	}
}
