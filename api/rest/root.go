package rest

import "cmp"

// Versions that clients of OpenSearch read and that mean nothing here: those of the release whose API this is.
const (
	luceneVersion         = "10.4.0"
	oldestWireCompatible  = "2.19.0"
	oldestIndexCompatible = "2.0.0"
	buildType             = "wlmserver"
	unknownBuild          = "unknown"
	tagline               = "wlmserver: the workload management API of OpenSearch"
)

func (s *Server) rootRoutes() []route {
	return []route{{methods: "GET HEAD", pattern: "/", prepare: s.root}}
}

type rootDTO struct {
	Name        string     `json:"name"`
	ClusterName string     `json:"cluster_name"`
	ClusterUUID string     `json:"cluster_uuid"`
	Version     versionDTO `json:"version"`
	Tagline     string     `json:"tagline"`
}

type versionDTO struct {
	Distribution  string `json:"distribution"`
	Number        string `json:"number"`
	BuildType     string `json:"build_type"`
	BuildHash     string `json:"build_hash"`
	BuildDate     string `json:"build_date"`
	BuildSnapshot bool   `json:"build_snapshot"`
	Lucene        string `json:"lucene_version"`
	MinWire       string `json:"minimum_wire_compatibility_version"`
	MinIndex      string `json:"minimum_index_compatibility_version"`
}

// root tells who this is, for people to read unless the request says otherwise.
func (s *Server) root(c *call) (action, error) {
	n := s.cfg.Node
	return func() (*answer, error) {
		c.pretty = c.pretty || !c.query.Has("pretty")
		return ok(rootDTO{
			Name:        n.Name,
			ClusterName: n.ClusterName,
			ClusterUUID: n.ClusterUUID,
			Version: versionDTO{
				Distribution: Distribution,
				Number:       Version,
				BuildType:    buildType,
				BuildHash:    n.Build.hash(),
				BuildDate:    cmp.Or(n.Build.Date, unknownBuild),
				Lucene:       luceneVersion,
				MinWire:      oldestWireCompatible,
				MinIndex:     oldestIndexCompatible,
			},
			Tagline: tagline,
		})
	}, nil
}
