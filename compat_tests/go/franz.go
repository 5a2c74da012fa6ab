package main

import (
	"context"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type franz struct {
	given  map[string]string
	owned  owned
	client *kgo.Client
	lock   sync.Mutex
	heads  map[partition]int64 // the offset after the last record read
}

func newFranz(given map[string]string) (member, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(given["bootstrap"]))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return &franz{given: given, heads: map[partition]int64{}}, client.Ping(context.Background())
}

func (f *franz) options() []kgo.Opt {
	assigned := func(_ context.Context, _ *kgo.Client, m map[string][]int32) { f.owned.change(true, m) }
	revoked := func(_ context.Context, _ *kgo.Client, m map[string][]int32) { f.owned.change(false, m) }
	options := []kgo.Opt{
		kgo.SeedBrokers(f.given["bootstrap"]), kgo.ClientID(f.given["client_id"]),
		kgo.ConsumerGroup(f.given["group"]), kgo.ConsumeTopics(strings.Split(f.given["topics"], ",")...),
		kgo.DisableAutoCommit(), kgo.FetchMaxWait(fetchWait), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(milliseconds(f.given, "session_ms")), kgo.HeartbeatInterval(milliseconds(f.given, "heartbeat_ms")),
		kgo.OnPartitionsAssigned(assigned), kgo.OnPartitionsRevoked(revoked), kgo.OnPartitionsLost(revoked),
	}
	if f.given["instance"] != "" {
		options = append(options, kgo.InstanceID(f.given["instance"]))
	}
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(), "uniform": kgo.StickyBalancer(),
	}
	options = append(options, kgo.Balancers(balancers[f.given["assignor"]]))
	if f.given["protocol"] == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	return options
}

func (f *franz) join() (err error) {
	f.client, err = kgo.NewClient(f.options()...)
	if err == nil {
		go f.poll()
	}
	return err
}

func (f *franz) poll() {
	for {
		fetches := f.client.PollFetches(context.Background())
		if fetches.IsClientClosed() {
			return
		}
		for _, failed := range fetches.Errors() {
			fatal(failed.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			f.lock.Lock()
			f.heads[partition{r.Topic, r.Partition}] = r.Offset + 1
			f.lock.Unlock()
			record(r.Topic, r.Partition, r.Offset, r.Value)
		})
	}
}

func (f *franz) send(offsets map[string]map[int32]kgo.EpochOffset) (failed error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	f.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		failed = err
		if err == nil {
			failed = firstCommitError(answer)
		}
	})
	return failed
}

func (f *franz) commit() error {
	f.lock.Lock()
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for _, p := range f.owned.list() {
		if head, read := f.heads[p]; read {
			if offsets[p.topic] == nil {
				offsets[p.topic] = map[int32]kgo.EpochOffset{}
			}
			offsets[p.topic][p.number] = kgo.EpochOffset{Epoch: -1, Offset: head}
		}
	}
	f.lock.Unlock()
	return f.send(offsets)
}

func (f *franz) commitOne(p partition, offset int64) error {
	return f.send(map[string]map[int32]kgo.EpochOffset{p.topic: {p.number: {Epoch: -1, Offset: offset}}})
}

func (f *franz) committed(p partition) (int64, error) {
	request := kmsg.NewPtrOffsetFetchRequest()
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = f.given["group"]
	topic := kmsg.NewOffsetFetchRequestGroupTopic()
	topic.Topic, topic.Partitions = p.topic, []int32{p.number}
	group.Topics = append(group.Topics, topic)
	request.Groups = append(request.Groups, group)
	for _, one := range f.client.RequestSharded(context.Background(), request) {
		if one.Err != nil {
			return -1, one.Err
		}
		if found, has := committedIn(one.Resp.(*kmsg.OffsetFetchResponse)); has {
			return found, nil
		}
	}
	return -1, nil
}

func (f *franz) seek(p partition, offset int64) error {
	f.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{p.topic: {p.number: {Epoch: -1, Offset: offset}}})
	return nil
}

func (f *franz) pause(p partition) error {
	f.client.PauseFetchPartitions(map[string][]int32{p.topic: {p.number}})
	return nil
}

func (f *franz) resume(p partition) error {
	f.client.ResumeFetchPartitions(map[string][]int32{p.topic: {p.number}})
	return nil
}

func (f *franz) leave() error {
	f.client.Close()
	return nil
}
