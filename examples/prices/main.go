// A service that reads orders and writes what each of them costs.
//
// Each batch of results is in one transaction with the offsets that it came from. Whatever fails
// ends the process, and its supervisor starts it again.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const batch = 500 // orders in a transaction at most

type order struct {
	ID         string `json:"id"`
	Quantity   int64  `json:"quantity"`
	PriceCents int64  `json:"price_cents"`
}

type cost struct {
	Order     string `json:"order"`
	CostCents int64  `json:"cost_cents"`
}

// priced returns what an order costs.
func priced(value []byte) ([]byte, error) {
	var read order
	if err := json.Unmarshal(value, &read); err != nil {
		return nil, err
	}
	return json.Marshal(cost{read.ID, read.Quantity * read.PriceCents})
}

// milliseconds returns a duration that the environment has.
func milliseconds(name string) time.Duration {
	number, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		log.Fatalf("%s is no number of milliseconds: %v", name, err)
	}
	return time.Duration(number) * time.Millisecond
}

// serve prices orders until the context ends.
func serve(ctx context.Context, session *kgo.GroupTransactSession) error {
	for ctx.Err() == nil {
		fetches := session.PollRecords(ctx, batch)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		if err := session.Begin(); err != nil {
			return err
		}
		var results []*kgo.Record
		for _, record := range fetches.Records() {
			if record.Attrs.IsControl() {
				continue
			}
			value, err := priced(record.Value)
			if err != nil {
				return err
			}
			results = append(results, &kgo.Record{Topic: os.Getenv("COSTS"), Key: record.Key, Value: value})
		}
		if err := session.ProduceSync(context.Background(), results...).FirstErr(); err != nil {
			return err
		}
		// Partitions that went away meanwhile abort it: their orders are another member's then.
		if _, err := session.End(context.Background(), kgo.TryCommit); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	timeout := milliseconds("SESSION_TIMEOUT_MS")
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(os.Getenv("KAFKA")),
		kgo.ConsumerGroup(os.Getenv("GROUP")),
		kgo.ConsumeTopics(os.Getenv("ORDERS")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.RequireStableFetchOffsets(),
		kgo.KeepControlRecords(), // their offsets are committed, too: the lag reaches zero
		kgo.SessionTimeout(timeout),
		kgo.HeartbeatInterval(timeout/4),
		kgo.TransactionalID(os.Getenv("TRANSACTIONAL_ID")),
		kgo.TransactionTimeout(milliseconds("TRANSACTION_TIMEOUT_MS")),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	if err := serve(ctx, session); err != nil {
		log.Fatal(err)
	}
}
