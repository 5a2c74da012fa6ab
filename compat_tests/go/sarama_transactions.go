package main

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var saramaTransactions = transactionMakers{newSaramaTransactional, newSaramaReader}

// saramaTransactional is initialised when it is made, and gives its offsets to the transaction's end.
type saramaTransactional struct {
	producer sarama.SyncProducer
	groupID  string
	group    sarama.ConsumerGroup
	cancel   context.CancelFunc
	ended    sync.WaitGroup
	messages chan *sarama.ConsumerMessage
	consumed []*sarama.ConsumerMessage
}

func newSaramaTransactional(bootstrap, id string, timeout time.Duration, of *ofGroup) (transactional, error) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Net.MaxOpenRequests = 1
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Retry.Max = 50
	config.Producer.Transaction.ID = id
	config.Producer.Transaction.Timeout = timeout
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, config)
	made := &saramaTransactional{producer: producer, messages: make(chan *sarama.ConsumerMessage)}
	if err == nil && of != nil {
		made.groupID = of.name
		err = made.join(bootstrap, of.topic)
	}
	return made, err
}

func (s *saramaTransactional) join(bootstrap, topic string) (err error) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.MaxWaitTime = fetchWait
	config.Consumer.Group.Rebalance.Retry.Backoff = retryTime
	if s.group, err = sarama.NewConsumerGroup([]string{bootstrap}, s.groupID, config); err != nil {
		return err
	}
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.ended.Add(1)
	go func() {
		defer s.ended.Done()
		for ctx.Err() == nil {
			if err := s.group.Consume(ctx, []string{topic}, s); err != nil {
				time.Sleep(retryTime) // the broker may be away
			}
		}
	}()
	return nil
}

func (s *saramaTransactional) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (s *saramaTransactional) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (s *saramaTransactional) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		select {
		case s.messages <- message:
		case <-session.Context().Done():
			return nil
		}
	}
	return nil
}

func (s *saramaTransactional) consume() (values []string, err error) {
	for timeout := time.After(pollTime); ; {
		select {
		case message := <-s.messages:
			s.consumed = append(s.consumed, message)
			values = append(values, string(message.Value))
		case <-timeout:
			return values, nil
		}
	}
}

func (s *saramaTransactional) begin() error { return s.producer.BeginTxn() }

func (s *saramaTransactional) send(to partition, values []string) error {
	messages := []*sarama.ProducerMessage{}
	for _, value := range values {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: to.topic, Partition: to.number, Value: sarama.StringEncoder(value),
		})
	}
	err := s.producer.SendMessages(messages)
	if failed, several := err.(sarama.ProducerErrors); several {
		return failed[0]
	}
	return err
}

func (s *saramaTransactional) sendOffsets() error {
	for _, message := range s.consumed {
		if err := s.producer.AddMessageToTxn(message, s.groupID, nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *saramaTransactional) commit() error { return s.producer.CommitTxn() }
func (s *saramaTransactional) abort() error  { return s.producer.AbortTxn() }

func (s *saramaTransactional) close() error {
	if s.group != nil {
		s.cancel()
		s.ended.Wait()
		if err := s.group.Close(); err != nil {
			return err
		}
	}
	return s.producer.Close()
}

type saramaReader struct {
	consumer  sarama.Consumer
	partition sarama.PartitionConsumer
}

func newSaramaReader(bootstrap, isolation string, of partition) (reader, error) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Consumer.MaxWaitTime = fetchWait
	if isolation == "read_committed" {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{bootstrap}, config)
	if err != nil {
		return nil, err
	}
	claim, err := consumer.ConsumePartition(of.topic, of.number, sarama.OffsetOldest)
	return &saramaReader{consumer, claim}, err
}

func (s *saramaReader) poll() (values []string, err error) {
	for timeout := time.After(pollTime); ; {
		select {
		case message := <-s.partition.Messages():
			values = append(values, string(message.Value))
		case <-timeout:
			return values, nil
		}
	}
}

func (s *saramaReader) close() error {
	if err := s.partition.Close(); err != nil {
		return err
	}
	return s.consumer.Close()
}
