package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	takeTime = 30 * time.Second
	peekTime = 400 * time.Millisecond
	pollTime = 100 * time.Millisecond
)

// transactional is the interface of a client's file; the lines of the program are described in
// compat_tests/transactions/drivers/line.py.
type transactional interface {
	begin() error
	send(to partition, values []string) error
	sendOffsets() error
	commit() error
	abort() error
	consume() ([]string, error) // what has come meanwhile, after pollTime at the latest
	close() error
}

type reader interface {
	poll() ([]string, error)
	close() error
}

var errNotCommitted = fmt.Errorf("the client aborted what it was told to commit")

type ofGroup struct{ name, topic, protocol string }

type transactionMakers struct {
	producer func(bootstrap, id string, timeout time.Duration, of *ofGroup) (transactional, error)
	reader   func(bootstrap, isolation string, of partition) (reader, error)
}

type transactionSession struct {
	bootstrap string
	makers    transactionMakers
	producers map[string]transactional
	consumed  map[string][]string
	readers   map[string]reader
	ahead     map[string][]string // what a reader has read and nobody has taken
}

func gather(poll func() ([]string, error), ended func([]string) bool) ([]string, error) {
	got := []string{}
	for deadline := time.Now().Add(takeTime); !ended(got); {
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("only %v in %v", got, takeTime)
		}
		values, err := poll()
		if err != nil {
			return nil, err
		}
		got = append(got, values...)
	}
	return got, nil
}

func (s *transactionSession) take(name, last string) ([]string, error) {
	values := s.ahead[name]
	if !slices.Contains(values, last) {
		more, err := gather(s.readers[name].poll, func(got []string) bool { return slices.Contains(got, last) })
		if err != nil {
			return nil, err
		}
		values = append(values, more...)
	}
	end := slices.Index(values, last) + 1
	s.ahead[name] = values[end:]
	return values[:end], nil
}

func (s *transactionSession) peek(name string) ([]string, error) {
	found := s.ahead[name]
	s.ahead[name] = nil
	for until := time.Now().Add(peekTime); time.Now().Before(until); {
		values, err := s.readers[name].poll()
		if err != nil {
			return nil, err
		}
		found = append(found, values...)
	}
	return found, nil
}

func (s *transactionSession) consume(name string, count string) (found []string, err error) {
	wanted, err := strconv.Atoi(count)
	if err != nil {
		return nil, err
	}
	found, err = gather(s.producers[name].consume, func(got []string) bool { return len(got) >= wanted })
	s.consumed[name] = found
	return found, err
}

func (s *transactionSession) transform(name string, to partition) error {
	made := []string{}
	for _, value := range s.consumed[name] {
		made = append(made, value+"'")
	}
	if err := s.producers[name].send(to, made); err != nil {
		return err
	}
	return s.producers[name].sendOffsets()
}

func (s *transactionSession) make(name string, words []string) (err error) {
	milliseconds, err := strconv.Atoi(words[1])
	if err != nil {
		return err
	}
	var group *ofGroup
	if len(words) > 2 {
		group = &ofGroup{words[2], words[3], words[4]}
	}
	s.producers[name], err = s.makers.producer(
		s.bootstrap, words[0], time.Duration(milliseconds)*time.Millisecond, group)
	return err
}

func (s *transactionSession) act(command, name string, words []string) (found []string, err error) {
	switch command {
	case "producer":
		err = s.make(name, words)
	case "begin":
		err = s.producers[name].begin()
	case "commit":
		err = s.producers[name].commit()
	case "abort":
		err = s.producers[name].abort()
	case "send":
		err = s.producers[name].send(parsePartition(words[0]), words[1:])
	case "consume":
		return s.consume(name, words[0])
	case "transform":
		err = s.transform(name, parsePartition(words[0]))
	case "reader":
		s.ahead[name] = nil
		s.readers[name], err = s.makers.reader(s.bootstrap, words[0], parsePartition(words[1]))
	case "take":
		return s.take(name, words[0])
	case "peek":
		return s.peek(name)
	case "close":
		if producer, has := s.producers[name]; has {
			delete(s.producers, name)
			return nil, producer.close()
		}
		err = s.readers[name].close()
		delete(s.readers, name)
	default:
		err = fmt.Errorf("no command: %s", command)
	}
	return nil, err
}

func serveTransactions(given map[string]string, makers transactionMakers) {
	session := transactionSession{
		given["bootstrap"], makers, map[string]transactional{}, map[string][]string{}, map[string]reader{}, map[string][]string{},
	}
	say("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if found, err := session.act(words[0], words[1], words[2:]); err != nil {
			say("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			say(strings.Join(append([]string{"ok"}, found...), " "))
		}
	}
}
