// One member of a group as a program: `members CLIENT NAME=VALUE ...`, where CLIENT is franz, sarama or segmentio.
// Its lines are described in compat_tests/groups/drivers/line.py. With CLIENT franz-transactions or sarama-transactions it
// is a client in transactions.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	answerTime = 20 * time.Second
	// Seeks, and the ends of generations, wait for the fetch that is in flight.
	fetchWait = 100 * time.Millisecond
)

type partition struct {
	topic  string
	number int32
}

func (p partition) String() string { return fmt.Sprintf("%s:%d", p.topic, p.number) }

func parsePartition(word string) partition {
	colon := strings.LastIndex(word, ":")
	number, err := strconv.ParseInt(word[colon+1:], 10, 32)
	if err != nil {
		panic(err)
	}
	return partition{word[:colon], int32(number)}
}

// member is the interface of a client's file. What it does not support returns errNotOffered, and no test uses it.
type member interface {
	join() error
	commit() error
	commitOne(partition, int64) error
	committed(partition) (int64, error) // -1: none
	seek(partition, int64) error
	pause(partition) error
	resume(partition) error
	leave() error
}

var errNotOffered = fmt.Errorf("this client does not offer it")

var saying sync.Mutex

func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	fmt.Println(words...)
}

func fatal(err error) { say("fatal", strings.ReplaceAll(err.Error(), "\n", " ")) }

func record(topic string, number int32, offset int64, value []byte) {
	say("record", partition{topic, number}, offset, string(value))
}

// owned are the partitions that the client owns according to its rebalance callbacks.
type owned struct {
	lock sync.Mutex
	held map[partition]bool
}

func (o *owned) change(to bool, assignment map[string][]int32) {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.held == nil {
		o.held = map[partition]bool{}
	}
	for topic, numbers := range assignment {
		for _, number := range numbers {
			if to {
				o.held[partition{topic, number}] = true
			} else {
				delete(o.held, partition{topic, number})
			}
		}
	}
	words := []string{}
	for p := range o.held {
		words = append(words, p.String())
	}
	sort.Strings(words)
	say(strings.Join(append([]string{"owns"}, words...), " "))
}

func (o *owned) list() []partition {
	o.lock.Lock()
	defer o.lock.Unlock()
	all := []partition{}
	for p := range o.held {
		all = append(all, p)
	}
	return all
}

func act(m member, words []string) (string, error) {
	switch {
	case words[0] == "join":
		return "", m.join()
	case words[0] == "commit" && len(words) == 1:
		return "", m.commit()
	}
	p := parsePartition(words[1])
	switch words[0] {
	case "committed":
		offset, err := m.committed(p)
		if offset < 0 {
			return "-", err
		}
		return strconv.FormatInt(offset, 10), err
	case "pause":
		return "", m.pause(p)
	case "resume":
		return "", m.resume(p)
	}
	offset, err := strconv.ParseInt(words[2], 10, 64)
	if err != nil {
		return "", err
	}
	if words[0] == "seek" {
		return "", m.seek(p, offset)
	}
	return "", m.commitOne(p, offset)
}

func main() {
	given := map[string]string{}
	for _, word := range os.Args[2:] {
		name, value, _ := strings.Cut(word, "=")
		given[name] = value
	}
	ofTransactions := map[string]transactionMakers{
		"franz-transactions": franzTransactions, "sarama-transactions": saramaTransactions,
	}
	if makers, has := ofTransactions[os.Args[1]]; has {
		serveTransactions(given, makers)
		return
	}
	makers := map[string]func(map[string]string) (member, error){
		"franz": newFranz, "sarama": newSarama, "segmentio": newSegmentio,
	}
	m, err := makers[os.Args[1]](given)
	if err != nil {
		fatal(err)
		os.Exit(1)
	}
	say("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "leave" {
			if err := m.leave(); err != nil {
				say("error", err)
			} else {
				say("ok")
			}
			return
		}
		if found, err := act(m, words); err != nil {
			say("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			say(strings.TrimSpace("ok " + found))
		}
	}
}

func milliseconds(given map[string]string, name string) time.Duration {
	number, err := strconv.Atoi(given[name])
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}
