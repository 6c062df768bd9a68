package rest_test
import ("testing";"fmt")
func TestSmoke(t *testing.T) {
	s := newServer(t)
	for _, p := range []string{"GET /", "GET /_cluster/health", "GET /_nodes", "GET /_wlm/stats", "GET /_tasks?detailed&human", "GET /_cluster/settings?include_defaults", "GET /metrics", "GET /_nosuch", "GET /a/b/c", "POST /_tasks?x=1", "OPTIONS /_cluster/health", "DELETE /_tasks", "GET /_tasks/_cancel", "GET /_cluster/health?nosuch=1&levle=x", "GET //_cluster//health/", "POST /_search", "GET /_search/scroll"} {
		var m, q string
		fmt.Sscanf(p, "%s %s", &m, &q)
		r := s.do(m, q, "")
		if len(r.body) > 1500 { r.body = r.body[:1500] }
		fmt.Println("##", p, r.status, r.header, "\n", r.body)
	}
}
