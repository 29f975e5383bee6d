// Reads partition 0 of a topic to its end by franz-go or sarama, and prints the value of every record: readers CLIENT BOOTSTRAP TOPIC ISOLATION.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 20 * time.Second

func main() {
	client, bootstrap, topic, isolation := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	last := os.Args[5]
	read := map[string]func(string, string, bool, func([]byte) bool) error{"franz-go": byFranzGo, "sarama": bySarama}[client]
	err := read(bootstrap, topic, isolation == "committed", func(value []byte) bool {
		fmt.Println(string(value))
		return string(value) == last
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// `take` says whether the record was the last one that is wanted.
func byFranzGo(bootstrap, topic string, committed bool, take func([]byte) bool) error {
	isolation := kgo.ReadUncommitted()
	if committed {
		isolation = kgo.ReadCommitted()
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.FetchIsolationLevel(isolation), kgo.ConsumePartitions(
		map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return errs[0].Err
		}
		for _, record := range fetches.Records() {
			if take(record.Value) {
				return nil
			}
		}
	}
}

func bySarama(bootstrap, topic string, committed bool, take func([]byte) bool) error {
	config := sarama.NewConfig()
	if committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{bootstrap}, config)
	if err != nil {
		return err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer partition.Close()
	for {
		select {
		case record := <-partition.Messages():
			if take(record.Value) {
				return nil
			}
		case <-time.After(patience):
			return fmt.Errorf("nothing came in %s", patience)
		}
	}
}
