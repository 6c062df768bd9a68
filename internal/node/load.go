package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/wlmserver/wlmserver/api/rest"
	"github.com/wlmserver/wlmserver/internal/nearest"
	"github.com/wlmserver/wlmserver/records"
	"github.com/wlmserver/wlmserver/settings"
)

const environmentPrefix = "WLMSERVER_"

// Sources are the places that a configuration is read from, weakest first.
type Sources struct {
	File        string   // path of a YAML file; "" = none
	Environment []string // "NAME=value", as of os.Environ; only WLMSERVER_ names count
	Overrides   []string // "key=value"; of several for one key the last wins
}

// Load reads a configuration: defaults, then file, environment and overrides, each winning over those before it.
// The error tells everything that is wrong, one line each ([UnknownKeyError], [ValueError]).
func Load(s Sources) (Config, error) {
	l := newLoader()
	for _, k := range l.keys {
		if k.Default != "" {
			l.set("default", k.Name, k.Default)
		}
	}
	l.file(s.File)
	l.environment(s.Environment)
	l.overrides(s.Overrides)
	l.derive()
	l.checkSettings()
	return l.config, errors.Join(l.errs...)
}

// loader gathers what the sources say, and what is wrong with it.
type loader struct {
	keys   map[string]Key
	names  []string          // of all keys and settings, sorted
	origin map[string]string // where a setting's value came from
	config Config
	errs   []error
}

func newLoader() *loader {
	l := &loader{keys: map[string]Key{}, origin: map[string]string{}}
	l.config.Settings = map[string]string{}
	for _, k := range Keys() {
		l.keys[k.Name] = k
		l.names = append(l.names, k.Name)
	}
	for _, s := range settings.Catalogue() {
		if _, ok := l.keys[s.Key]; !ok {
			l.names = append(l.names, s.Key)
		}
	}
	slices.Sort(l.names)
	return l
}

func (l *loader) failed(err error) { l.errs = append(l.errs, err) }

// set takes one value from one source.
func (l *loader) set(source, name, value string) {
	if k, ok := l.keys[name]; ok {
		if err := k.set(&l.config, value); err != nil {
			l.failed(&ValueError{Source: source, Key: name, Value: value, Reason: err.Error()})
		}
		return
	}
	if _, ok := slices.BinarySearch(l.names, name); ok {
		l.config.Settings[name] = value
		l.origin[name] = source
		return
	}
	l.failed(&UnknownKeyError{Source: source, Key: name, Nearest: nearest.Name(name, l.names...)})
}

func (l *loader) file(path string) {
	if path == "" {
		return
	}
	k := koanf.New(".")
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		if _, ok := errors.AsType[*os.PathError](err); ok {
			l.failed(fmt.Errorf("cannot read the configuration file: %w", err))
		} else {
			l.failed(fmt.Errorf("%s is not a YAML file of keys and values: %w", path, err))
		}
		return
	}
	times := map[string]int{}
	countLeaves(times, "", k.Raw())
	for _, name := range k.Keys() {
		if times[name] > 1 {
			l.failed(&ValueError{Source: path, Key: name, Reason: "is given twice, dotted and nested: keep one of them"})
			continue
		}
		value, err := scalar(k.Get(name))
		if err != nil {
			l.failed(&ValueError{Source: path, Key: name, Reason: err.Error()})
			continue
		}
		l.set(path, name, value)
	}
}

// countLeaves counts how often each dotted name stands in m: "a.b" and a nested b under a are the same name.
func countLeaves(times map[string]int, prefix string, m map[string]any) {
	for k, v := range m {
		if sub, ok := v.(map[string]any); ok && len(sub) > 0 {
			countLeaves(times, prefix+k+".", sub)
			continue
		}
		times[prefix+k]++
	}
}

// scalar writes a value of the file as the text that it stood for.
func scalar(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", errors.New("has no value: give it one or remove the line")
	case map[string]any:
		return "", errors.New("has no value: give it one or remove the line")
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			s, err := scalar(item)
			if err != nil || strings.Contains(s, ",") {
				return "", errors.New("is a list whose members must be plain values without commas")
			}
			items[i] = s
		}
		return strings.Join(items, ","), nil
	default:
		return "", fmt.Errorf("is of a kind that no key takes (%T): put the value in quotes", v)
	}
}

func (l *loader) environment(environ []string) {
	names := map[string]string{}
	for _, name := range l.names {
		names[environmentName(name)] = name
	}
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		variable, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(variable, environmentPrefix) || isServiceLink(variable) {
			continue
		}
		if name, ok := names[variable]; ok {
			l.set("environment variable "+variable, name, value)
			continue
		}
		l.failed(&UnknownKeyError{Source: "environment", Key: variable, Nearest: nearest.Name(variable, slices.Sorted(maps.Keys(names))...)})
	}
}

// isServiceLink tells variables that Kubernetes sets in every pod beside a service that is itself called wlmserver, such as
// WLMSERVER_SERVICE_HOST and WLMSERVER_PORT_9200_TCP_ADDR. They are about that service and no keys of ours.
func isServiceLink(variable string) bool {
	rest := strings.TrimPrefix(variable, environmentPrefix)
	if rest == "PORT" || rest == "SERVICE_HOST" || rest == "SERVICE_PORT" || strings.HasPrefix(rest, "SERVICE_PORT_") {
		return true
	}
	port, ok := strings.CutPrefix(rest, "PORT_")
	return ok && port != "" && port[0] >= '0' && port[0] <= '9'
}

func (l *loader) overrides(entries []string) {
	for _, entry := range entries {
		name, value, ok := strings.Cut(entry, "=")
		if !ok {
			l.failed(&ValueError{Source: "-E", Key: entry, Reason: "has no value: write -E key=value"})
			continue
		}
		l.set("-E", strings.TrimSpace(name), value)
	}
}

// derive works out the defaults that depend on the machine or on other keys.
func (l *loader) derive() {
	c := &l.config
	if c.NodeName == "" {
		if name, err := os.Hostname(); err == nil && name != "" {
			c.NodeName = name
		} else {
			c.NodeName = "wlmserver"
		}
	}
	if c.HeapSize == 0 {
		c.HeapSize = availableMemory()
	}
	if c.Cluster.Prefix == "" {
		c.Cluster.Prefix = "/wlmserver/" + c.ClusterName
	}
	if c.Compatibility == "" {
		c.Compatibility = rest.Version
	}
	if c.HTTP.MaxInFlightBytes == 0 {
		c.HTTP.MaxInFlightBytes = max(c.HeapSize/10, 1)
	}
	if c.SearchPool.Size == 0 {
		c.SearchPool.Size = runtime.GOMAXPROCS(0)*3/2 + 1
	}
}

// checkSettings has the start values of settings judged as the server will.
func (l *loader) checkSettings() {
	start := maps.Clone(l.config.Settings)
	for {
		_, err := settings.Open(context.Background(), new(records.Memory), start)
		if err == nil {
			return
		}
		invalid, ok := errors.AsType[*settings.InvalidError](err)
		if ok {
			_, ok = start[invalid.Key]
		}
		if !ok { // so the mistake cannot be taken out to look for the next one
			l.failed(err)
			return
		}
		l.failed(fmt.Errorf("%s: %w", l.origin[invalid.Key], invalid))
		delete(start, invalid.Key)
	}
}
