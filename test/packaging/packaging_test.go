// Package packaging_test holds the files with which the server is packed and started to what the server takes.
package packaging_test

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/wlmserver/wlmserver/internal/node"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// image is the environment that the image gives the server.
func image(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, line := range regexp.MustCompile(`(?m)^ENV (.*)$`).FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		all = append(all, strings.Fields(line[1])...)
	}
	return all
}

// Each node of compose.yaml has a configuration that the server takes, with an address, a certificate and data of its own.
func TestCompose(t *testing.T) {
	var file struct {
		Services map[string]struct {
			Build       struct{ Target string }
			Environment map[string]string
			Ports       []string
			Volumes     []string
			DependsOn   yaml.Node `yaml:"depends_on"`
		}
		Volumes map[string]yaml.Node
	}
	if err := yaml.Unmarshal([]byte(read(t, "compose.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	dockerfile := read(t, "Dockerfile")
	nodes := 0
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(file.Services)) {
		s := file.Services[name]
		if !strings.Contains(dockerfile, " AS "+s.Build.Target+"\n") {
			t.Errorf("%s: the Dockerfile has no target %q", name, s.Build.Target)
		}
		for _, v := range s.Volumes {
			volume, _, _ := strings.Cut(v, ":")
			if _, ok := file.Volumes[volume]; !ok {
				t.Errorf("%s: no volume %s", name, volume)
			}
		}
		if s.Build.Target != "server" {
			continue
		}
		nodes++
		environment := image(t)
		for key, value := range s.Environment {
			environment = append(environment, key+"="+value)
		}
		c, err := node.Load(node.Sources{Environment: environment})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.NodeName != name || c.Transport.Host != name || c.Transport.Certificate != "/certificates/"+name+".crt" || c.Transport.Key != "/certificates/"+name+".key" {
			t.Errorf("%s: %s at %s with %s and %s", name, c.NodeName, c.Transport.Host, c.Transport.Certificate, c.Transport.Key)
		}
		if len(c.Cluster.Endpoints) == 0 || c.Transport.Authorities == "" || c.HTTP.Host != "0.0.0.0" {
			t.Errorf("%s: etcd at %v, authorities %s, http.host %s", name, c.Cluster.Endpoints, c.Transport.Authorities, c.HTTP.Host)
		}
		for _, what := range []string{s.Ports[0], s.Volumes[0]} {
			if before := seen[what]; before != "" {
				t.Errorf("%s and %s share %s", before, name, what)
			}
			seen[what] = name
		}
		if !strings.HasPrefix(s.Ports[0], "127.0.0.1:") || !strings.HasSuffix(s.Ports[0], ":9200") {
			t.Errorf("%s: port %s", name, s.Ports[0])
		}
	}
	if nodes != 3 {
		t.Errorf("%d nodes", nodes)
	}
}

// The certificates are of their authority, for the address they are named after, and for both sides.
func TestCertificates(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("needs openssl")
	}
	folder := filepath.Join(t.TempDir(), "certificates")
	for _, addresses := range [][]string{{"n1", "10.0.0.2"}, {"node-3.example.org", "::1"}} { // the second time the authority is there
		if out, err := exec.CommandContext(t.Context(), filepath.Join(root, "packaging/certificates"), append([]string{folder}, addresses...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	authorities := x509.NewCertPool()
	if b, err := os.ReadFile(filepath.Join(folder, "ca.crt")); err != nil || !authorities.AppendCertsFromPEM(b) {
		t.Fatal("no authority", err)
	}
	for _, address := range []string{"n1", "10.0.0.2", "node-3.example.org", "::1"} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, address+".crt"), filepath.Join(folder, address+".key"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
			if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: authorities, DNSName: address, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
				t.Errorf("%s: %v", address, err)
			}
		}
		if info, err := os.Stat(filepath.Join(folder, address+".key")); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("the key of %s is open to others: %v, %v", address, info.Mode(), err)
		}
	}
}

// systemd takes the unit. What it says of a program that is not installed does not count.
func TestUnit(t *testing.T) {
	unit := read(t, "packaging/wlmserver.service")
	if !strings.Contains(unit, "RestartPreventExitStatus=2\n") {
		t.Error("a wrong configuration is tried again and again")
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("needs systemd-analyze")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "wlmserver.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(unit, "/usr/local/bin/wlmserver", self)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "wlmserver.service") { // of others on this machine it may tell too
			t.Error(line)
			err = nil
		}
	}
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
