package groups

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// ParsePatch reads the body of a request that creates or updates a group, and checks
// every field by itself. The error is an *InvalidError, or a *jsondoc.SyntaxError where
// the body is not JSON.
func ParsePatch(body []byte) (Patch, error) {
	document, err := jsondoc.Parse(body)
	if err != nil {
		return Patch{}, syntaxFault(body, err)
	}
	if document.Kind != jsondoc.Object {
		return Patch{}, invalidf("the body [%s] is of the wrong kind, %s; send an object such as {\"resiliency_mode\":\"soft\"}", describe(document), document.Kind)
	}
	r := patchReader{body: body}
	for _, m := range document.Members {
		if err := r.part(m); err != nil {
			return Patch{}, err
		}
	}
	return r.patch, nil
}

// syntaxFault keeps a syntax error as it is, but inside of resource_limits OpenSearch
// answers it as an illegal argument.
func syntaxFault(body []byte, err error) error {
	var syntax *jsondoc.SyntaxError
	if !errors.As(err, &syntax) || len(syntax.Path) == 0 || syntax.Path[0] != "resource_limits" {
		return err
	}
	if len(syntax.Path) == 1 && bytes.HasSuffix(bytes.TrimRight(body[:syntax.Offset], " \t\r\n"), []byte(":")) {
		return err // they do not even begin
	}
	return &InvalidError{Reason: syntax.Error()}
}

// patchReader gathers a patch from the members of a body.
type patchReader struct {
	body  []byte
	patch Patch
}

func (r *patchReader) part(m jsondoc.Member) error {
	switch m.Name {
	case "name":
		return read(&r.patch.Name, m.Value, readName)
	case "resiliency_mode":
		return read(&r.patch.Mode, m.Value, readMode)
	case "resource_limits":
		return read(&r.patch.Limits, m.Value, readLimits)
	case "settings":
		if m.Value.Kind == jsondoc.Array && len(m.Value.Items) == 0 {
			return nil // as OpenSearch has it: it says nothing
		}
		return read(&r.patch.Settings, m.Value, r.settings)
	case "throttling":
		return read(&r.patch.Throttling, m.Value, readThrottling)
	case "queue":
		return read(&r.patch.Queue, m.Value, readQueue)
	case "_id", "updated_at": // the server's to say; what a client sends, as from a GET, is passed over
		if m.Value.Kind == jsondoc.Object || m.Value.Kind == jsondoc.Array {
			return wrongKind(m.Name, m.Value, "leave it out, the server sets it")
		}
		return nil
	}
	const known = "it has name, resiliency_mode, resource_limits, settings, throttling and queue"
	switch m.Value.Kind {
	case jsondoc.Null:
		return nil // says nothing, whatever it says it of
	case jsondoc.Object:
		return invalidf("[%s] is not a valid object of a workload group; %s", abridge(m.Name), known)
	case jsondoc.Array:
		return invalidf("[%s] is not a valid array of a workload group; %s", abridge(m.Name), known)
	default:
		return invalidf("[%s], with the value [%s], is not a valid field of a workload group; %s", abridge(m.Name), abridge(m.Value.Text), known)
	}
}

// read sets a field to null, or to what the reader makes of the value.
func read[T any](f *Field[T], v *jsondoc.Value, reader func(*jsondoc.Value) (T, error)) error {
	if v.Kind == jsondoc.Null {
		*f = Null[T]()
		return nil
	}
	value, err := reader(v)
	if err != nil {
		return err
	}
	*f = Value(value)
	return nil
}

func readName(v *jsondoc.Value) (string, error) {
	if !v.Scalar() {
		return "", wrongKind("name", v, "give a string of 1 to "+strconv.Itoa(MaxNameLength)+" characters")
	}
	return v.Text, ValidateName(v.Text)
}

func readMode(v *jsondoc.Value) (Mode, error) {
	if !v.Scalar() {
		return "", wrongKind("resiliency_mode", v, "give "+allModes)
	}
	mode := Mode(strings.ToLower(v.Text))
	return mode, checkMode(mode, v.Text)
}

func readLimits(v *jsondoc.Value) (ResourceLimits, error) {
	var limits ResourceLimits
	if v.Kind != jsondoc.Object {
		return limits, wrongKind("resource_limits", v, "give an object such as {\"cpu\":0.4}")
	}
	for _, m := range v.Members {
		limit := limits.field(m.Name)
		if limit == nil {
			return limits, invalidf("Unknown resource type: [%s] in [resource_limits], with the value [%s]; the resources are cpu, memory and native_memory",
				abridge(m.Name), describe(m.Value))
		}
		n, err := readShare("resource_limits."+m.Name, m.Value)
		if err != nil {
			return limits, err
		}
		*limit = &n
	}
	return limits, nil
}

// readShare reads a number, or a string with one in it.
func readShare(key string, v *jsondoc.Value) (float64, error) {
	if v.Kind != jsondoc.Number && v.Kind != jsondoc.String {
		return 0, wrongKind(key, v, shareRemedy)
	}
	n, err := strconv.ParseFloat(v.Text, 64)
	// ParseFloat also reads Go's own forms of numbers: hexadecimal, and with underscores.
	if err != nil && !errors.Is(err, strconv.ErrRange) || strings.ContainsAny(v.Text, "xX_") {
		return 0, &InvalidError{
			Type:   TypeNumberFormat,
			Reason: "the value [" + abridge(v.Text) + "] of [" + key + "] is not a number; " + shareRemedy,
		}
	}
	return n, checkShare(key, n)
}

func readThrottling(v *jsondoc.Value) (ThrottlingPatch, error) {
	var p ThrottlingPatch
	if v.Kind != jsondoc.Object {
		return p, wrongKind("throttling", v, "give an object such as {\"attribute\":\"group\",\"node_limit\":10}, or null to turn throttling off")
	}
	for _, m := range v.Members {
		key := "throttling." + m.Name
		var err error
		switch m.Name {
		case "attribute", "by":
			if !p.Attribute.Absent() {
				return p, invalidf("[throttling.by] and [throttling.attribute] are two names of one thing, and [%s] came second, with the value [%s]; give one of them",
					key, describe(m.Value))
			}
			err = read(&p.Attribute, m.Value, func(v *jsondoc.Value) (Attribute, error) { return readAttribute(key, v) })
		case "node_limit":
			err = readInt(&p.NodeLimit, key, m.Value, maxLimit)
		case "shared_limit":
			err = readInt(&p.SharedLimit, key, m.Value, maxLimit)
		default:
			err = invalidf("Unknown throttle setting: [%s], with the value [%s]; [throttling] has attribute, node_limit and shared_limit",
				abridge(m.Name), describe(m.Value))
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

func readAttribute(key string, v *jsondoc.Value) (Attribute, error) {
	if v.Kind != jsondoc.String {
		return "", wrongKind(key, v, "give "+allAttributes)
	}
	attribute := Attribute(v.Text)
	return attribute, checkAttribute(key, attribute)
}

func readQueue(v *jsondoc.Value) (QueuePatch, error) {
	var p QueuePatch
	if v.Kind != jsondoc.Object {
		return p, wrongKind("queue", v, "give an object such as {\"size_per_bucket\":100}, or null to turn queueing off")
	}
	for _, m := range v.Members {
		if m.Name != "size_per_bucket" {
			return p, unknownQueueKey(m)
		}
		if err := readInt(&p.SizePerBucket, "queue.size_per_bucket", m.Value, MaxQueued); err != nil {
			return p, err
		}
	}
	return p, nil
}

// unknownQueueKey tells users of keys that once were what stands in their place.
func unknownQueueKey(m jsondoc.Member) error {
	remedy := "[queue] has only size_per_bucket"
	switch m.Name {
	case "timeout":
		remedy = "a queue has no timeout; bound the wait by cancel_after_time_interval, of the request, " +
			"of the group's settings or of the cluster's (search.cancel_after_time_interval)"
	case "size":
		remedy = "give size_per_bucket, which counts each throttle bucket by itself"
	}
	return invalidf("Unknown queue setting: [%s], with the value [%s]; %s", abridge(m.Name), describe(m.Value), remedy)
}

// readInt reads an integer from 0 to most, or a string with one in it, or null.
func readInt(f *Field[int], key string, v *jsondoc.Value, most int) error {
	return read(f, v, func(v *jsondoc.Value) (int, error) {
		if v.Kind != jsondoc.Number && v.Kind != jsondoc.String {
			return 0, notAnInteger(key, describe(v), most)
		}
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, notAnInteger(key, v.Text, most)
		}
		return int(n), checkInt(key, v.Text, n, most)
	})
}

func notAnInteger(key, value string, most int) error {
	return invalidf("the value [%s] of [%s] must be an integer; give one from 0 to %d, or null to remove it", abridge(value), key, most)
}

func wrongKind(key string, v *jsondoc.Value, remedy string) error {
	return invalidf("the value [%s] of [%s] is of the wrong kind, %s; %s", describe(v), key, v.Kind, remedy)
}

// describe shows a value in a message.
func describe(v *jsondoc.Value) string {
	switch v.Kind {
	case jsondoc.Object:
		return "{…}"
	case jsondoc.Array:
		return "[…]"
	}
	return abridge(v.Text)
}
