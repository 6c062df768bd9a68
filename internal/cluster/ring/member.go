package ring

// Member is one node as the ring names it. A restart is another incarnation, and so another member. Members can be compared.
type Member struct {
	ID          string `json:"id"`
	Incarnation string `json:"incarnation"`
	Name        string `json:"name"`
	Transport   string `json:"transport_address"` // host:port where other nodes reach it
	HTTP        string `json:"http_address"`      // host:port where clients reach it
	Version     string `json:"version"`           // what it is compatible with: "3.7.0"
}
