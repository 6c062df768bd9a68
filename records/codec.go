package records

import (
	"encoding/json"
	"fmt"
)

// Unknown is what a record says beside what its reader knows: members of the object, and
// of objects within it. Nil is nothing. It is not to be changed.
type Unknown map[string]json.RawMessage

// Decode reads a record into a value of a struct type, and returns beside it what that
// type has no place for.
func Decode[R any](record []byte) (value R, unknown Unknown, err error) {
	if err := json.Unmarshal(record, &value); err != nil {
		return value, nil, fmt.Errorf("not a record of this kind: %w", err)
	}
	known, err := json.Marshal(value)
	if err != nil {
		return value, nil, err
	}
	return value, without(record, known), nil
}

// Encode writes a value as a record, with what the record had beside it when it was read.
// What the value says wins.
func Encode[R any](value R, unknown Unknown) ([]byte, error) {
	record, err := json.Marshal(value)
	if err != nil || len(unknown) == 0 {
		return record, err
	}
	return with(record, unknown)
}

// without returns the members of an object that another one has not, of objects in both
// what remains of them.
func without(object, known []byte) Unknown {
	all, ok := members(object)
	if !ok {
		return nil
	}
	some, ok := members(known)
	if !ok {
		return nil
	}
	var rest Unknown
	for name, value := range all {
		if counterpart, ok := some[name]; ok {
			within := without(value, counterpart)
			if len(within) == 0 {
				continue
			}
			value, _ = json.Marshal(within) // it has just been read
		}
		if rest == nil {
			rest = make(Unknown)
		}
		rest[name] = value
	}
	return rest
}

// with adds members to an object, where both have an object to that one.
func with(object []byte, more Unknown) ([]byte, error) {
	all, ok := members(object)
	if !ok {
		return object, nil
	}
	for name, value := range more {
		if own, ok := all[name]; ok {
			within, ok := members(value)
			if !ok {
				continue
			}
			var err error
			if value, err = with(own, within); err != nil {
				return nil, err
			}
		}
		all[name] = value
	}
	return json.Marshal(all)
}

// members reads an object. Anything else has none.
func members(value []byte) (map[string]json.RawMessage, bool) {
	var all map[string]json.RawMessage
	if json.Unmarshal(value, &all) != nil || all == nil {
		return nil, false
	}
	return all, true
}
