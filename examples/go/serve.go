// Package relay serves the adapter protocol for the relays with clients in Go.
package relay

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Relay is one start of a relay.
type Relay interface {
	Hold() error // joins the group, until partitions are held
	Run() error  // relays until it is told to stop
	Stop()
}

// Start holds the fields of `start` that a relay needs.
type Start struct {
	ApplicationID        string            `json:"application_id"`
	Mode                 string            `json:"mode"`
	Bootstrap            string            `json:"bootstrap"`
	Topics               map[string]string `json:"topics"`
	Parameters           map[string]any    `json:"parameters"`
	SessionTimeoutMs     int               `json:"session_timeout_ms"`
	TransactionTimeoutMs int               `json:"transaction_timeout_ms"`
}

// IsExactlyOnce tells whether outputs and offsets are one transaction.
func (s Start) IsExactlyOnce() bool { return s.Mode == "exactly_once" }

// Interval is the time between two commits.
func (s Start) Interval() time.Duration {
	if given, ok := s.Parameters["commit_interval_ms"].(float64); ok {
		return time.Duration(given) * time.Millisecond
	}
	return 100 * time.Millisecond
}

// Session is the time after which the group takes a silent member for dead.
func (s Start) Session() time.Duration {
	return time.Duration(s.SessionTimeoutMs) * time.Millisecond
}

// TransactionTimeout is the time after which the broker aborts a transaction.
func (s Start) TransactionTimeout() time.Duration {
	return time.Duration(s.TransactionTimeoutMs) * time.Millisecond
}

type request struct {
	Type       string `json:"type"`
	DeadlineMs int    `json:"deadline_ms"`
	Start
}

type message map[string]any

var out sync.Mutex

// say writes one line to the harness.
func say(said message) {
	out.Lock()
	defer out.Unlock()
	line, _ := json.Marshal(said)
	fmt.Printf("%s\n", line)
}

// Serve answers the harness's requests, until one of them is to stop.
func Serve(
	name, version string, open func(Start) (Relay, error), isFenced func(error) bool,
) {
	giveUp := func(err error) {
		kind := "storage"
		var unreadable Poison
		if errors.As(err, &unreadable) {
			kind = "poison"
		} else if isFenced(err) {
			kind = "fenced"
		}
		say(message{"type": "failed", "kind": kind, "message": err.Error()})
		os.Exit(1)
	}
	var running Relay
	done := make(chan struct{})
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			giveUp(err)
		}
		switch asked.Type {
		case "hello":
			say(message{
				"type": "hello", "protocol": 1, "name": name, "version": version,
				"language": "go", "programs": []string{"relay"},
				"modes": []string{"at_least_once", "exactly_once"},
			})
		case "start":
			if running, err = open(asked.Start); err == nil {
				err = running.Hold()
			}
			if err != nil {
				giveUp(err)
			}
			id := asked.ApplicationID
			say(message{"type": "ready", "consumer_group": id, "transactional_id_prefix": id})
			go func() {
				if err := running.Run(); err != nil {
					giveUp(err)
				}
				close(done)
			}()
		case "stop":
			running.Stop()
			select {
			case <-done:
				say(message{"type": "stopped"})
			case <-time.After(time.Duration(asked.DeadlineMs) * time.Millisecond):
				say(message{"type": "error", "definite": false, "message": "it does not end in time"})
			}
			return
		default:
			say(message{"type": "error", "definite": true, "message": asked.Type + " is not offered"})
		}
	}
}
