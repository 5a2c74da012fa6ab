package main

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func firstCommitError(answer *kmsg.OffsetCommitResponse) error {
	for _, topic := range answer.Topics {
		for _, one := range topic.Partitions {
			if err := kerr.ErrorForCode(one.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

func committedIn(answer *kmsg.OffsetFetchResponse) (int64, bool) {
	for _, group := range answer.Groups {
		for _, topic := range group.Topics {
			for _, one := range topic.Partitions {
				return one.Offset, true
			}
		}
	}
	return -1, false
}
