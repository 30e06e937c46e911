package claybot_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/claybot/claybot"
)

// TestSettingsClone: whatever JSON is decoded into a copy, the settings themselves stay.
func TestSettingsClone(t *testing.T) {
	fresh := func() claybot.Settings {
		return claybot.Settings{
			DebounceMS: new(int64(500)), Tools: []string{"wait"}, Approved: []string{"shell"}, ApprovedBy: map[string]claybot.Approving{"shell": {By: "a"}},
			ModelChoice: &claybot.ModelChoice{By: "a", Before: []claybot.MessageID{"m"}},
			Permissions: &claybot.Permissions{Web: new(true), ReadDirs: []string{"a"}},
		}
	}
	own := fresh()
	for f, v := range reflect.ValueOf(own).Fields() {
		if k := f.Type.Kind(); (k == reflect.Pointer || k == reflect.Map || k == reflect.Slice) && v.IsNil() {
			t.Errorf("the test does not set %s", f.Name)
		}
	}
	c := own.Clone()
	if !reflect.DeepEqual(c, own) {
		t.Errorf("the copy is %+v, want %+v", c, own)
	}
	err := json.Unmarshal([]byte(`{"debounceMs":-1,"tools":["x"],"approved":["x"],"approvedBy":{"x":{}},"modelChoice":{"by":"x","before":["x"]},"permissions":{"web":false,"readDirs":["x"]}}`), &c)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(own, fresh()) {
		t.Errorf("the settings are now %+v", own)
	}
}
