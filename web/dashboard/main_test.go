package dashboard_test

import (
	"testing"

	"github.com/claybot/claybot/web/webtest"
)

// folders has the data directories of all tests.
var folders webtest.Folders

func TestMain(m *testing.M) { folders.Main(m, "dashboard", endBrowser) }
