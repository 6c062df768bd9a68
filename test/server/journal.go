package server

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/wlmserver/wlmserver/wlm"
)

// journalPause is how often a server appends to its journal: what happened since is lost when it is killed.
const journalPause = 2 * time.Millisecond

// Journal is a history in a file, one event a line. It is not safe for concurrent use.
type Journal struct{ file *os.File }

// CreateJournal makes an empty journal.
func CreateJournal(path string) (*Journal, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &Journal{f}, nil
}

// Append adds events. They stay when the process is killed.
func (j *Journal) Append(events []wlm.Event) error {
	var text []byte
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	_, err := j.file.Write(text)
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }

// ReadJournal reads the events of a journal. A last one that was cut off by a kill is left out.
func ReadJournal(path string) ([]wlm.Event, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	var events []wlm.Event
	for {
		var e wlm.Event
		switch err := d.Decode(&e); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return events, nil
		case err != nil:
			return nil, err
		}
		events = append(events, e)
	}
}
