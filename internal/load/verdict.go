package load

import "bytes"

// end is how a request ended for its client.
type end uint8

const (
	completed    end = iota // answered with success
	throttled               // refused by the limit of its group
	refused                 // any other 429: a full pool, a bound on memory, a server that stops
	evicted                 // cancelled while it waited in its group's queue
	cancelled               // cancelled before that, or while it ran
	failed                  // any other answer
	disconnected            // its client left, as it was told to
	lost                    // no connection, or none to the end of the answer
	unanswered              // given up at the end of the load
	ends
)

// answered reports whether the client knows what the server made of the request.
func (e end) answered() bool { return e < disconnected }

const (
	isRejected  = "rejected_execution_exception"
	isCancelled = "task_cancelled_exception"
)

// judge says what an answer means.
func judge(status int, e apiError) end {
	switch {
	case status < 300:
		return completed
	case status == 429 && string(e.kind) == isRejected && bytes.Contains(e.reason, []byte("throttled")):
		return throttled
	case status == 429:
		return refused
	case string(e.kind) == isCancelled && bytes.Contains(e.reason, []byte("while queued")):
		return evicted
	case string(e.kind) == isCancelled || string(e.rootKind) == isCancelled:
		return cancelled
	}
	return failed
}

// apiError is what OpenSearch's error body says: its type, its reason as it is written, and the type of its first root
// cause. All are parts of the body, and nil where it does not say.
type apiError struct{ kind, reason, rootKind []byte }

// readError finds the parts of an error body in one pass. It is no JSON parser: of what is no JSON it finds something or
// nothing, and a body that was cut off is read as far as it goes.
func readError(body []byte) apiError {
	const ( // depths of the members
		ofError = 2 // {"error":{"type":…
		ofRoot  = 4 // {"error":{"root_cause":[{"type":…
	)
	var (
		e     apiError
		key   []byte // of the member whose value comes next
		path  [ofRoot]string
		depth int
	)
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '{', '[':
			if depth < len(path) {
				path[depth] = ""
				switch string(key) {
				case "error", "root_cause":
					path[depth] = string(key[:1])
				}
			}
			depth++
			key = nil
		case '}', ']':
			depth--
			key = nil
		case ',':
			key = nil
		case '"':
			s, next := quoted(body, i)
			i = next - 1
			if key == nil {
				key = s
				continue
			}
			inError := depth >= ofError && path[1] == "e"
			switch {
			case inError && depth == ofError && string(key) == "type" && e.kind == nil:
				e.kind = s
			case inError && depth == ofError && string(key) == "reason" && e.reason == nil:
				e.reason = s
			case inError && depth == ofRoot && path[2] == "r" && string(key) == "type" && e.rootKind == nil:
				e.rootKind = s
			}
			key = nil
		}
		if depth < 0 {
			break
		}
	}
	return e
}

// quoted returns what stands between the quote at start and the next one, escapes as they are, and where to read on.
func quoted(b []byte, start int) (s []byte, next int) {
	for i := start + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return b[start+1 : i], i + 1
		}
	}
	return b[min(start+1, len(b)):], len(b)
}
