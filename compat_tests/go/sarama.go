package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const retryTime = 100 * time.Millisecond

// saramaMember has no seek: sarama moves a position only backwards, by committing it.
type saramaMember struct {
	given   map[string]string
	config  *sarama.Config
	group   sarama.ConsumerGroup
	owned   owned
	lock    sync.Mutex
	session sarama.ConsumerGroupSession
	context context.Context
	cancel  context.CancelFunc
	ended   chan struct{}
}

func newSarama(given map[string]string) (member, error) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = given["client_id"]
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.MaxWaitTime = fetchWait
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Group.Session.Timeout = milliseconds(given, "session_ms")
	config.Consumer.Group.Heartbeat.Interval = milliseconds(given, "heartbeat_ms")
	config.Consumer.Group.Rebalance.Retry.Backoff = retryTime
	config.Consumer.Group.InstanceId = given["instance"]
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	group, err := sarama.NewConsumerGroup([]string{given["bootstrap"]}, given["group"], config)
	ctx, cancel := context.WithCancel(context.Background())
	return &saramaMember{
		given: given, config: config, group: group, context: ctx, cancel: cancel, ended: make(chan struct{}),
	}, err
}

func (s *saramaMember) join() error {
	go func() {
		defer close(s.ended)
		for s.context.Err() == nil {
			err := s.group.Consume(s.context, strings.Split(s.given["topics"], ","), s)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
			if err != nil && s.context.Err() == nil {
				fatal(err)
				time.Sleep(retryTime)
			}
		}
	}()
	return nil
}

func (s *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	s.lock.Lock()
	s.session = session
	s.lock.Unlock()
	s.owned.change(true, session.Claims())
	return nil
}

func (s *saramaMember) Cleanup(session sarama.ConsumerGroupSession) error {
	s.owned.change(false, session.Claims())
	return nil
}

func (s *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		session.MarkMessage(message, "")
		record(message.Topic, message.Partition, message.Offset, message.Value)
	}
	return nil
}

func (s *saramaMember) current() sarama.ConsumerGroupSession {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.session
}

func (s *saramaMember) commit() error {
	s.current().Commit()
	return nil
}

func (s *saramaMember) commitOne(p partition, offset int64) error {
	session := s.current()
	session.ResetOffset(p.topic, p.number, offset, "")
	session.Commit()
	return nil
}

func (s *saramaMember) committed(p partition) (int64, error) {
	admin, err := sarama.NewClusterAdmin([]string{s.given["bootstrap"]}, s.config)
	if err != nil {
		return -1, err
	}
	defer admin.Close()
	found, err := admin.ListConsumerGroupOffsets(s.given["group"], map[string][]int32{p.topic: {p.number}})
	if err != nil {
		return -1, err
	}
	return found.GetBlock(p.topic, p.number).Offset, nil
}

func (s *saramaMember) seek(partition, int64) error { return errNotOffered }

func (s *saramaMember) pause(p partition) error {
	s.group.Pause(map[string][]int32{p.topic: {p.number}})
	return nil
}

func (s *saramaMember) resume(p partition) error {
	s.group.Resume(map[string][]int32{p.topic: {p.number}})
	return nil
}

func (s *saramaMember) leave() error {
	s.cancel()
	<-s.ended
	return s.group.Close()
}
