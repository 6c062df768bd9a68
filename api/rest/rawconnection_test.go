package rest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rawRequest is a request as it goes over a connection, and what its answer may look like.
type rawRequest struct {
	name    string
	method  string
	head    string // request line and headers, with the empty line behind them
	body    string
	expects bool // to be told to go on with the body
	waits   bool // with the body until then; an answer that comes before is the only one

	status int // of the answer; 0 is any
	answers
	ends ending
}

// slow is longer than anything here takes, and shorter than the ten seconds for which a body may make no progress.
const slow = 8 * time.Second

// answers is the form of an answer's body.
type answers uint8

const (
	jsonAnswer    answers = iota // a document, or an error in one of its shapes
	resultAnswer                 // a document; with an error status too
	textAnswer                   // text, or an error in JSON
	yamlAnswer                   // a document in YAML
	emptyAnswer                  // nothing
	foreignAnswer                // what net/http says itself: it never gets to this package
)

// ending is whether the connection ends with the answer.
type ending uint8

const (
	staysOpen ending = iota
	mayEnd           // where the body begins and ends cannot be relied on, or it was not worth reading
	mustEnd
)

// TestRawConnection sends a thousand requests, good and bad, over raw connections, one after the other and many at once. Each gets
// just one answer, in order, whose form is right, until one after which HTTP says that the connection ends. A seed that found
// something goes into the list.
func TestRawConnection(t *testing.T) {
	for _, seed := range []uint64{1, 2, uint64(time.Now().UnixNano())} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			s := newServer(t, func(o *options) { o.limits.MaxContentLength = 4 << 10 })
			w := newRawWriter(s, rand.New(rand.NewPCG(seed, 0)))
			s.sendRaw(w, 1000)
			if left := s.admission.Totals(); left.Waiters != 0 || left.Tracked != 2 { // two hold their permits all the time
				t.Errorf("left behind: %+v", left)
			}
		})
	}
}

// sendRaw sends so many requests, over as many connections as it takes.
func (s *server) sendRaw(w *rawWriter, n int) {
	s.Helper()
	connections := 0
	for sent := 0; sent < n && !s.Failed(); connections++ {
		c, br := s.dial()
		for open := true; open && sent < n && !s.Failed(); {
			batch := make([]rawRequest, min(n-sent, 1+w.random.IntN(3)*w.random.IntN(15)))
			for i := range batch {
				batch[i] = w.next()
			}
			var answered int
			answered, open = s.exchange(c, br, batch)
			sent += answered
		}
		c.Close()
	}
	if connections > n/3 {
		s.Errorf("%d connections for %d requests: too few share one to say something about the others", connections, n)
	}
}

// exchange sends requests at once and reads their answers: as many as there are requests, or up to one with which the connection
// ends. It says how many there were, and whether the connection is still open.
func (s *server) exchange(c net.Conn, br *bufio.Reader, batch []rawRequest) (answered int, open bool) {
	s.Helper()
	var all strings.Builder
	for i, r := range batch {
		all.WriteString(r.head)
		if !r.waits {
			all.WriteString(r.body)
		}
		if r.waits || r.announced() { // what comes behind the one is its body, and behind the other nothing may come
			batch = batch[:i+1]
			break
		}
	}
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		_, _ = io.WriteString(c, all.String()) // a connection that the server has ended takes no more
	}()
	defer func() { <-wrote }()
	for i, r := range batch {
		started := time.Now()
		end, err := s.answer(c, br, r)
		if took := time.Since(started); took > slow {
			s.Errorf("request %d of %d, %s, is answered after %v\n%.400s\n%.400s", i+1, len(batch), r.name, took, r.head, r.body)
		}
		if err != nil {
			s.Errorf("request %d of %d, %s\n%.400s\n%.400s\n%v", i+1, len(batch), r.name, r.head, r.body, err)
			c.Close()
			return i + 1, false
		}
		if end {
			s.checkEnd(br, r)
			c.Close()
			return i + 1, false
		}
	}
	return len(batch), true
}

// checkEnd waits for the end of a connection with whose last answer all is said.
func (s *server) checkEnd(br *bufio.Reader, r rawRequest) {
	s.Helper()
	if r.waits { // net/http still waits for the body, as long as a body may make no progress
		return
	}
	started := time.Now()
	if b, err := br.ReadByte(); err == nil {
		s.Errorf("%s: after the answer that ends the connection there is %q", r.name, b)
	}
	if took := time.Since(started); took > slow {
		s.Errorf("%s: after %v the connection has not ended\n%.400s", r.name, took, r.head)
	}
}

// answer reads the answer to one request and checks it.
func (s *server) answer(c net.Conn, br *bufio.Reader, r rawRequest) (end bool, err error) {
	resp, err := http.ReadResponse(br, &http.Request{Method: r.method})
	if err != nil {
		return false, err
	}
	if resp.StatusCode == http.StatusContinue {
		if !r.expects {
			return false, errors.New("it is told to go on, and did not ask")
		}
		if r.waits {
			if _, err := io.WriteString(c, r.body); err != nil {
				return false, err
			}
		}
		if resp, err = http.ReadResponse(br, &http.Request{Method: r.method}); err != nil {
			return false, err
		}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, fmt.Errorf("the body of %d is badly framed: %w", resp.StatusCode, err)
	}
	if err := r.check(resp, body); err != nil {
		return false, fmt.Errorf("%w: %d %v\n%.500s", err, resp.StatusCode, resp.Header, body)
	}
	return resp.Close, nil
}

// announced says whether it is the sender that wants the connection to end, or who has broken it.
func (r *rawRequest) announced() bool {
	return r.answers == foreignAnswer || r.ends == mustEnd && (strings.Contains(r.head, "Connection: close") || strings.Contains(r.head, "HTTP/1.0"))
}

// check says what is wrong with an answer.
func (r *rawRequest) check(resp *http.Response, body []byte) error {
	if r.status != 0 && resp.StatusCode != r.status {
		return fmt.Errorf("status %d is wanted", r.status)
	}
	if resp.Close && r.ends == staysOpen {
		return errors.New("the connection ends without need")
	}
	if !resp.Close && r.ends == mustEnd {
		return errors.New("the connection does not end")
	}
	if r.answers == foreignAnswer {
		if resp.StatusCode < 400 || !resp.Close || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
			return errors.New("not what net/http says")
		}
		return nil
	}
	if len(resp.TransferEncoding) > 0 || resp.ContentLength < 0 {
		return fmt.Errorf("its length is not said: %d %v", resp.ContentLength, resp.TransferEncoding)
	}
	if allow := resp.Header.Get("Allow"); resp.StatusCode == http.StatusMethodNotAllowed && (allow == "" || contains(allow, r.method)) {
		return fmt.Errorf("405 with Allow: %q", allow)
	}
	if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") == "" {
		return errors.New("429 without Retry-After")
	}
	if r.method == http.MethodHead {
		if len(body) > 0 {
			return errors.New("HEAD has a body")
		}
		return nil
	}
	if int64(len(body)) != resp.ContentLength {
		return fmt.Errorf("%d bytes of %d", len(body), resp.ContentLength)
	}
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err == nil {
			body, err = io.ReadAll(z)
		}
		if err != nil {
			return err
		}
	}
	return r.checkBody(resp, body)
}

func (r *rawRequest) checkBody(resp *http.Response, body []byte) error {
	media := resp.Header.Get("Content-Type")
	switch {
	case resp.StatusCode == http.StatusRequestEntityTooLarge:
		if len(body) > 0 {
			return errors.New("413 says something")
		}
		return nil
	case r.answers == emptyAnswer:
		if len(body) > 0 {
			return errors.New("there is a body")
		}
		return nil
	case r.answers == yamlAnswer:
		if media != "application/yaml" || !bytes.HasPrefix(body, []byte("---\n")) {
			return errors.New("no YAML")
		}
		return nil
	case r.answers == textAnswer && resp.StatusCode < 400:
		if !strings.HasPrefix(media, "text/plain") || len(body) > 0 && body[len(body)-1] != '\n' {
			return errors.New("no lines of text")
		}
		return nil
	}
	if media != "application/json; charset=UTF-8" || !json.Valid(body) {
		return errors.New("no JSON")
	}
	if resp.StatusCode < 400 {
		return checkItems(body)
	}
	if r.answers == resultAnswer {
		return nil
	}
	return checkError(body, resp.StatusCode)
}

// checkError says what is wrong with an error, be it in whichever shape.
func checkError(body []byte, status int) error {
	var e struct {
		Error  json.RawMessage
		Status *int
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return err
	}
	if e.Status != nil && *e.Status != status {
		return fmt.Errorf("status %d in the body", *e.Status)
	}
	var text string
	if json.Unmarshal(e.Error, &text) == nil {
		if text == "" || status >= 500 {
			return errors.New("an error that says nothing")
		}
		return nil
	}
	return checkCause(e.Error, status)
}

// checkItems says what is wrong with the errors of the items of a multi-search.
func checkItems(body []byte) error {
	var all struct {
		Responses []struct {
			Status int
			Error  json.RawMessage
		}
	}
	if json.Unmarshal(body, &all) != nil {
		return nil // of another kind
	}
	for _, item := range all.Responses {
		if (item.Error != nil) != (item.Status >= 400) {
			return fmt.Errorf("an item with status %d", item.Status)
		}
		if item.Error != nil {
			if err := checkCause(item.Error, item.Status); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkCause(text []byte, status int) error {
	var e struct {
		Type, Reason string
		RootCause    []struct{ Type string } `json:"root_cause"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return err
	}
	if e.Type == "" || e.Reason == "" && e.Type != "search_phase_execution_exception" { // that one may leave it to its cause
		return errors.New("an error without type and reason")
	}
	for _, root := range e.RootCause {
		if root.Type == "" {
			return errors.New("a root cause without a type")
		}
	}
	if status >= 500 && serverErrors[e.Type] == "" {
		return errors.New("the server fails")
	}
	return nil
}

// contains says whether a comma list has a word.
func contains(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(w) == word {
			return true
		}
	}
	return false
}
