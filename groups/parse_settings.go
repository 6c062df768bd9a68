package groups

import (
	"fmt"

	"github.com/wlmserver/wlmserver/internal/jsondoc"
)

// settings reads the settings block. Nested objects are another way to write dotted
// keys; values are kept as strings, however they were written.
func (r *patchReader) settings(v *jsondoc.Value) (map[string]Field[string], error) {
	settings := make(map[string]Field[string])
	if v.Kind != jsondoc.Object {
		line, column := jsondoc.Position(r.body, v.Offset)
		return nil, &InvalidError{
			Type: TypeParsing, Line: line, Column: column,
			Reason: fmt.Sprintf("the value [%s] of [settings] is of the wrong kind, %s; give an object, or null to clear the settings", describe(v), v.Kind),
		}
	}
	return settings, flatten(settings, "", v)
}

// flatten adds the members of an object to settings, each under prefix and its name.
// A key that is too long to be known is refused before its members are looked at, or
// deep nesting of long names would cost the product of both.
func flatten(settings map[string]Field[string], prefix string, v *jsondoc.Value) error {
	for _, m := range v.Members {
		key := prefix + m.Name
		if len(key) > longestKey {
			return unknownSetting(key, describe(m.Value))
		}
		if m.Value.Kind == jsondoc.Object {
			if err := flatten(settings, key+".", m.Value); err != nil {
				return err
			}
			continue
		}
		field, err := readSetting(key, m.Value)
		if err != nil {
			return err
		}
		if _, twice := settings[key]; twice {
			return invalidf("[settings.%s] is given twice, the second time with the value [%s]; give it once", key, describe(m.Value))
		}
		settings[key] = field
	}
	return nil
}

func readSetting(key string, v *jsondoc.Value) (Field[string], error) {
	switch {
	case !knownSetting(key):
		return Field[string]{}, unknownSetting(key, describe(v))
	case v.Kind == jsondoc.Null:
		return Null[string](), nil
	case v.Kind == jsondoc.Array:
		return Field[string]{}, wrongKind("settings."+key, v, "give a single value, or null to remove it")
	}
	return Value(v.Text), checkSetting(key, v.Text)
}
