package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var franzTransactions = transactionMakers{newFranzTransactional, newFranzReader}

// franzTransactional has a session if it consumes: the offsets of everything polled are committed with its end.
type franzTransactional struct {
	client  *kgo.Client
	session *kgo.GroupTransactSession
}

func newFranzTransactional(bootstrap, id string, timeout time.Duration, of *ofGroup) (transactional, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.TransactionalID(id), kgo.TransactionTimeout(timeout),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.FetchMaxWait(fetchWait),
	}
	made := &franzTransactional{}
	var err error
	if of == nil {
		made.client, err = kgo.NewClient(options...)
	} else {
		options = append(options, kgo.ConsumerGroup(of.name), kgo.ConsumeTopics(of.topic), kgo.RequireStableFetchOffsets(),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		if of.protocol == "consumer" {
			options = append(options, kgo.ServerSideBalancer())
		}
		if made.session, err = kgo.NewGroupTransactSession(options...); err == nil {
			made.client = made.session.Client()
		}
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	_, _, err = made.client.ProducerID(ctx)
	return made, err
}

func (f *franzTransactional) begin() error {
	if f.session != nil {
		return f.session.Begin()
	}
	return f.client.BeginTransaction()
}

func (f *franzTransactional) send(to partition, values []string) error {
	records := []*kgo.Record{}
	for _, value := range values {
		records = append(records, &kgo.Record{Topic: to.topic, Partition: to.number, Value: []byte(value)})
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	return f.client.ProduceSync(ctx, records...).FirstErr()
}

func (f *franzTransactional) sendOffsets() error { return nil } // the end does

func (f *franzTransactional) end(try kgo.TransactionEndTry) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	if f.session != nil {
		if committed, err := f.session.End(ctx, try); err != nil || committed == bool(try) {
			return err
		}
		return errNotCommitted
	}
	return f.client.EndTransaction(ctx, try)
}

func (f *franzTransactional) commit() error { return f.end(kgo.TryCommit) }
func (f *franzTransactional) abort() error  { return f.end(kgo.TryAbort) }

func (f *franzTransactional) consume() ([]string, error) { return pollFranz(f.client) }

func (f *franzTransactional) close() error {
	f.client.Close()
	return nil
}

type franzReader struct{ client *kgo.Client }

func newFranzReader(bootstrap, isolation string, of partition) (reader, error) {
	level := kgo.ReadUncommitted()
	if isolation == "read_committed" {
		level = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap), kgo.FetchIsolationLevel(level), kgo.FetchMaxWait(fetchWait),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{of.topic: {of.number: kgo.NewOffset().AtStart()}}),
	)
	return &franzReader{client}, err
}

func (f *franzReader) poll() ([]string, error) { return pollFranz(f.client) }

func (f *franzReader) close() error {
	f.client.Close()
	return nil
}

func pollFranz(client *kgo.Client) (values []string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), pollTime)
	defer cancel()
	fetches := client.PollFetches(ctx)
	if ctx.Err() == nil {
		err = fetches.Err()
	}
	fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	return values, err
}
