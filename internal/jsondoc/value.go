package jsondoc

// Kind is what a JSON value is.
type Kind uint8

// The kinds of JSON values.
const (
	Object Kind = iota + 1
	Array
	String
	Number
	Bool
	Null
)

// String names the kind as an error message would.
func (k Kind) String() string {
	switch k {
	case Object:
		return "object"
	case Array:
		return "array"
	case String:
		return "string"
	case Number:
		return "number"
	case Bool:
		return "boolean"
	case Null:
		return "null"
	}
	return "nothing"
}

// A Value is one value of a document.
type Value struct {
	Kind   Kind
	Offset int // of its first byte in the document

	// Text is a string's content with escapes resolved, a number as it was written,
	// or true, false, null. Empty for objects and arrays.
	Text string

	Members []Member // of an object, in the order of the document
	Items   []*Value // of an array
}

// A Member is one key of an object with its value.
type Member struct {
	Name   string // with escapes resolved
	Offset int    // of the name's opening quote
	Value  *Value
}

// Member returns the value of a key, or nil when v is nil, not an object, or without it.
func (v *Value) Member(name string) *Value {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			return v.Members[i].Value
		}
	}
	return nil
}

// Scalar reports whether v is a string, a number or a boolean.
func (v *Value) Scalar() bool {
	return v.Kind == String || v.Kind == Number || v.Kind == Bool
}
