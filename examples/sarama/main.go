// A relay with sarama: it writes every record of `input` to `output`, with one hop more.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"upheld/relay"
)

const batch = 1000

// clients are those of one start; they are the group's handler too.
type clients struct {
	producer sarama.SyncProducer
	group    sarama.ConsumerGroup
	start    relay.Start
	assigned chan struct{}
	once     sync.Once
	working  sync.Mutex // a producer has one transaction at a time
	stopping context.Context
	cancel   context.CancelFunc
	failed   error
	done     chan struct{}
}

func open(start relay.Start) (relay.Relay, error) {
	sarama.Logger = log.New(os.Stderr, "sarama ", log.LstdFlags)
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.MaxWaitTime = 100 * time.Millisecond
	config.Consumer.Group.Session.Timeout = start.Session()
	config.Consumer.Group.Heartbeat.Interval = start.Session() / 4
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1
	if start.IsExactlyOnce() {
		config.Producer.Transaction.ID = start.ApplicationID
		config.Producer.Transaction.Timeout = start.TransactionTimeout()
	}
	stopping, cancel := context.WithCancel(context.Background())
	c := &clients{
		start: start, stopping: stopping, cancel: cancel,
		assigned: make(chan struct{}), done: make(chan struct{}),
	}
	var err error
	// The same id at every start: a successor fences its predecessor.
	if c.producer, err = sarama.NewSyncProducer([]string{start.Bootstrap}, config); err != nil {
		return nil, err
	}
	c.group, err = sarama.NewConsumerGroup([]string{start.Bootstrap}, start.ApplicationID, config)
	return c, err
}

// Hold joins the group, until partitions are held or a minute is over.
func (c *clients) Hold() error {
	go c.consume()
	select {
	case <-c.assigned:
		return nil
	case <-c.done:
		return errors.Join(c.failed, errors.New("the group was left"))
	case <-time.After(time.Minute):
		return errors.New("no partition was assigned within a minute")
	}
}

// consume is a member of one generation of the group after the other.
func (c *clients) consume() {
	defer close(c.done)
	for c.stopping.Err() == nil && c.failed == nil {
		err := c.group.Consume(c.stopping, []string{c.start.Topics["input"]}, c)
		if err != nil && c.failed == nil && c.stopping.Err() == nil {
			c.failed = err
		}
	}
}

// Run relays until it is told to stop.
func (c *clients) Run() error {
	<-c.done
	if c.failed != nil {
		return c.failed
	}
	return errors.Join(c.group.Close(), c.producer.Close())
}

// Stop lets Run end after the batch that is under way.
func (c *clients) Stop() { c.cancel() }

// Setup is called when partitions are assigned.
func (c *clients) Setup(session sarama.ConsumerGroupSession) error {
	if len(session.Claims()) > 0 {
		c.once.Do(func() { close(c.assigned) })
	}
	return nil
}

// Cleanup has nothing to do: each batch is committed before the next one.
func (c *clients) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim relays one partition.
func (c *clients) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case first, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			if err := c.step(session, arrived(first, claim)); err != nil {
				c.fail(err)
				return err
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

// fail keeps the first error, which ends the relay.
func (c *clients) fail(err error) {
	c.working.Lock()
	defer c.working.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	c.cancel()
}

// arrived returns the records that are there by now.
func arrived(
	first *sarama.ConsumerMessage, claim sarama.ConsumerGroupClaim,
) []*sarama.ConsumerMessage {
	records := []*sarama.ConsumerMessage{first}
	for len(records) < batch {
		select {
		case next, ok := <-claim.Messages():
			if !ok {
				return records
			}
			records = append(records, next)
		default:
			return records
		}
	}
	return records
}

// step writes records until each is acknowledged, and commits their offsets.
func (c *clients) step(
	session sarama.ConsumerGroupSession, records []*sarama.ConsumerMessage,
) error {
	c.working.Lock()
	defer c.working.Unlock()
	outputs, err := c.transformed(records)
	if err != nil {
		return err
	}
	last := records[len(records)-1]
	if !c.start.IsExactlyOnce() {
		if err := c.producer.SendMessages(outputs); err != nil {
			return err
		}
		session.MarkMessage(last, "")
		session.Commit()
		return nil
	}
	if err := c.producer.BeginTxn(); err != nil {
		return err
	}
	if err := c.finish(outputs, last); err != nil {
		return errors.Join(err, c.producer.AbortTxn())
	}
	session.MarkMessage(last, "")
	return nil
}

// finish sends outputs and an offset in the transaction that is open, and commits it.
func (c *clients) finish(outputs []*sarama.ProducerMessage, last *sarama.ConsumerMessage) error {
	if err := c.producer.SendMessages(outputs); err != nil {
		return err
	}
	if err := c.producer.AddMessageToTxn(last, c.start.ApplicationID, nil); err != nil {
		return err
	}
	return c.producer.CommitTxn()
}

func (c *clients) transformed(records []*sarama.ConsumerMessage) ([]*sarama.ProducerMessage, error) {
	var outputs []*sarama.ProducerMessage
	for _, r := range records {
		value, err := relay.WithHop(r.Topic, r.Partition, r.Offset, r.Key, r.Value)
		if err != nil {
			return nil, err
		}
		output := &sarama.ProducerMessage{
			Topic: c.start.Topics["output"], Key: sarama.ByteEncoder(r.Key),
			Value: sarama.ByteEncoder(value), Timestamp: r.Timestamp,
		}
		for _, header := range r.Headers {
			output.Headers = append(output.Headers, *header)
		}
		outputs = append(outputs, output)
	}
	return outputs, nil
}

func isFenced(err error) bool {
	return errors.Is(err, sarama.ErrProducerFenced) || errors.Is(err, sarama.ErrInvalidProducerEpoch)
}

func main() { relay.Serve("sarama", "1.61.1", open, isFenced) }
