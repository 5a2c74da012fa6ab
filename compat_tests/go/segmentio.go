package main

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/segmentio/kafka-go"
)

// segmentio is kafka-go's ConsumerGroup with one of its Readers for each partition, as in its documentation: the
// Reader that joins groups by itself does not report the partitions it owns. There is no pause.
type segmentio struct {
	given   map[string]string
	group   *kafka.ConsumerGroup
	owned   owned
	lock    sync.Mutex
	now     *kafka.Generation
	readers map[partition]*kafka.Reader
	heads   map[partition]int64
}

func newSegmentio(given map[string]string) (member, error) {
	connection, err := kafka.Dial("tcp", given["bootstrap"])
	if err != nil {
		return nil, err
	}
	return &segmentio{
		given: given, readers: map[partition]*kafka.Reader{}, heads: map[partition]int64{},
	}, connection.Close()
}

func (s *segmentio) join() (err error) {
	s.group, err = kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: s.given["group"], Brokers: []string{s.given["bootstrap"]}, Topics: strings.Split(s.given["topics"], ","),
		Dialer:            &kafka.Dialer{ClientID: s.given["client_id"], Timeout: answerTime},
		GroupBalancers:    []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
		SessionTimeout:    milliseconds(s.given, "session_ms"),
		HeartbeatInterval: milliseconds(s.given, "heartbeat_ms"),
		JoinGroupBackoff:  milliseconds(s.given, "heartbeat_ms"),
		StartOffset:       kafka.FirstOffset,
	})
	if err == nil {
		go s.serve()
	}
	return err
}

func (s *segmentio) serve() {
	for {
		generation, err := s.group.Next(context.Background())
		if errors.Is(err, kafka.ErrGroupClosed) {
			return
		}
		if err != nil {
			fatal(err)
			continue
		}
		s.begin(generation)
	}
}

func (s *segmentio) begin(generation *kafka.Generation) {
	assignment := map[string][]int32{}
	s.lock.Lock()
	s.now = generation
	s.readers = map[partition]*kafka.Reader{}
	for topic, parts := range generation.Assignments {
		for _, part := range parts {
			p := partition{topic, int32(part.ID)}
			assignment[topic] = append(assignment[topic], p.number)
			s.readers[p] = kafka.NewReader(kafka.ReaderConfig{
				Brokers: []string{s.given["bootstrap"]}, Topic: topic, Partition: part.ID, MaxBytes: 1 << 20,
				MaxWait: fetchWait,
			})
			if err := s.readers[p].SetOffset(part.Offset); err != nil {
				fatal(err)
			}
			generation.Start(s.reading(p, s.readers[p]))
		}
	}
	s.lock.Unlock()
	s.owned.change(true, assignment)
	generation.Start(func(ctx context.Context) {
		<-ctx.Done()
		s.owned.change(false, assignment)
	})
}

func (s *segmentio) reading(p partition, reader *kafka.Reader) func(context.Context) {
	return func(ctx context.Context) {
		defer reader.Close()
		for {
			message, err := reader.ReadMessage(ctx)
			if err != nil {
				return // the generation has ended
			}
			s.lock.Lock()
			s.heads[p] = message.Offset + 1
			s.lock.Unlock()
			record(message.Topic, p.number, message.Offset, message.Value)
		}
	}
}

func (s *segmentio) commit() error {
	offsets := map[string]map[int]int64{}
	s.lock.Lock()
	for p := range s.readers {
		if head, read := s.heads[p]; read {
			if offsets[p.topic] == nil {
				offsets[p.topic] = map[int]int64{}
			}
			offsets[p.topic][int(p.number)] = head
		}
	}
	now := s.now
	s.lock.Unlock()
	return now.CommitOffsets(offsets)
}

func (s *segmentio) commitOne(p partition, offset int64) error {
	s.lock.Lock()
	now := s.now
	s.lock.Unlock()
	return now.CommitOffsets(map[string]map[int]int64{p.topic: {int(p.number): offset}})
}

func (s *segmentio) committed(p partition) (int64, error) {
	// A transport of its own: the shared one keeps connections, also those that a broker has closed.
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(s.given["bootstrap"]), Timeout: answerTime, Transport: transport}
	found, err := client.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{
		GroupID: s.given["group"], Topics: map[string][]int{p.topic: {int(p.number)}},
	})
	if err != nil {
		return -1, err
	}
	if found.Error != nil {
		return -1, found.Error
	}
	return found.Topics[p.topic][0].CommittedOffset, nil
}

func (s *segmentio) seek(p partition, offset int64) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.readers[p].SetOffset(offset)
}

func (s *segmentio) pause(partition) error  { return errNotOffered }
func (s *segmentio) resume(partition) error { return errNotOffered }
func (s *segmentio) leave() error           { return s.group.Close() }
