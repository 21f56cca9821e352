// A relay with franz-go: it writes every record of `input` to `output`, with one hop more.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"upheld/relay"
)

const batch = 1000

// clients are those of one start.
type clients struct {
	client   *kgo.Client               // of at_least_once
	session  *kgo.GroupTransactSession // of exactly_once
	output   string
	interval time.Duration
	assigned chan struct{}
	stopping context.Context
	cancel   context.CancelFunc
}

func open(start relay.Start) (relay.Relay, error) {
	stopping, stop := context.WithCancel(context.Background())
	r := &clients{
		output:   start.Topics["output"],
		interval: start.Interval(),
		assigned: make(chan struct{}),
		stopping: stopping,
		cancel:   stop,
	}
	var once sync.Once
	options := []kgo.Opt{
		kgo.SeedBrokers(start.Bootstrap),
		kgo.ConsumerGroup(start.ApplicationID),
		kgo.ConsumeTopics(start.Topics["input"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(start.Session()),
		kgo.HeartbeatInterval(start.Session() / 4),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) {
			once.Do(func() { close(r.assigned) })
		}),
	}
	var err error
	if start.IsExactlyOnce() {
		r.session, err = kgo.NewGroupTransactSession(append(options,
			kgo.TransactionalID(start.ApplicationID),
			kgo.TransactionTimeout(start.TransactionTimeout()),
			kgo.RequireStableFetchOffsets(),
		)...)
		if err == nil {
			// The same id at every start: a successor fences its predecessor.
			_, _, err = r.session.Client().ProducerID(stopping)
		}
	} else {
		r.client, err = kgo.NewClient(append(options,
			kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(), kgo.OnPartitionsRevoked(r.revoked),
		)...)
	}
	return r, err
}

// revoked commits what was written before partitions go to another member.
func (r *clients) revoked(ctx context.Context, client *kgo.Client, _ map[string][]int32) {
	_ = client.CommitUncommittedOffsets(ctx)
}

// Hold joins the group, until partitions are held or a minute is over.
func (r *clients) Hold() error {
	deadline := time.After(time.Minute)
	for {
		select {
		case <-r.assigned:
			return nil
		case <-deadline:
			return errors.New("no partition was assigned within a minute")
		default:
			if err := r.step(); err != nil {
				return err
			}
		}
	}
}

// Run relays until it is told to stop.
func (r *clients) Run() error {
	for r.stopping.Err() == nil {
		if err := r.step(); err != nil {
			return err
		}
	}
	if r.session != nil {
		r.session.Close()
		return nil
	}
	r.client.AllowRebalance()
	r.client.Close()
	return nil
}

// Stop lets Run end after the batch that is under way.
func (r *clients) Stop() { r.cancel() }

// step relays what has arrived within an interval, and commits it.
func (r *clients) step() error {
	within, cancel := context.WithTimeout(r.stopping, r.interval)
	defer cancel()
	if r.session != nil {
		return r.transact(within)
	}
	r.client.AllowRebalance()
	fetches := r.client.PollRecords(within, batch)
	records, err := r.transformed(fetches)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return nil
	}
	if err := r.client.ProduceSync(context.Background(), records...).FirstErr(); err != nil {
		return err
	}
	if err := r.client.CommitUncommittedOffsets(context.Background()); err != nil && !isPassing(err) {
		return err
	}
	return nil
}

// transact makes one transaction of what has arrived within an interval.
func (r *clients) transact(within context.Context) error {
	fetches := r.session.PollRecords(within, batch)
	records, failed := r.transformed(fetches)
	if len(records) == 0 {
		return failed
	}
	if err := r.session.Begin(); err != nil {
		return err
	}
	produced := r.session.ProduceSync(context.Background(), records...).FirstErr()
	wanted := kgo.TryCommit
	if produced != nil || failed != nil {
		wanted = kgo.TryAbort
	}
	_, err := r.session.End(context.Background(), wanted)
	return errors.Join(failed, produced, err)
}

// transformed returns the outputs of records, and the first error that is not passing.
func (r *clients) transformed(fetches kgo.Fetches) ([]*kgo.Record, error) {
	var outputs []*kgo.Record
	for _, failed := range fetches.Errors() {
		if !isPassing(failed.Err) {
			return nil, failed.Err
		}
	}
	for _, record := range fetches.Records() {
		value, err := relay.WithHop(record.Topic, record.Partition, record.Offset, record.Key, record.Value)
		if err != nil {
			return outputs, err
		}
		outputs = append(outputs, &kgo.Record{
			Topic: r.output, Key: record.Key, Value: value, Headers: record.Headers,
			Timestamp: record.Timestamp,
		})
	}
	return outputs, nil
}

func isPassing(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		kerr.IsRetriable(err) || errors.Is(err, kerr.RebalanceInProgress)
}

func isFenced(err error) bool {
	return errors.Is(err, kerr.InvalidProducerEpoch) || errors.Is(err, kerr.ProducerFenced)
}

func main() { relay.Serve("franz-go", "1.22.3", open, isFenced) }
