package node

import (
	"runtime"
	"runtime/debug"

	"github.com/wlmserver/wlmserver/api/rest"
)

// VersionInfo says which program this is and what it speaks.
type VersionInfo struct {
	Build         string // of this program; "development" when it was built from no tagged source
	Revision      string // of its source; "" when not known
	Date          string // of that revision, RFC 3339; "" when not known
	Compatibility string // the OpenSearch version whose API it speaks
	Go            string
}

// Version reads what the Go toolchain wrote into the program.
func Version() VersionInfo {
	v := VersionInfo{Build: "development", Compatibility: rest.Version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Build = m
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.time":
			v.Date = s.Value
		}
	}
	return v
}
