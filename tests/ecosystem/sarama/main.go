// Copies a topic to another with sarama: a consumer group whose offsets are committed in the producer's transactions.
//
// Arguments: broker, input topic, output topic, transactional id. The program ends with status 1 at the first error, so
// that whoever runs it starts it again.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/IBM/sarama"
)

const group = "copiers"

type copier struct {
	mutex    sync.Mutex // one transaction at a time, although each partition has a goroutine
	producer sarama.AsyncProducer
	output   string
}

func (c *copier) Setup(sarama.ConsumerGroupSession) error {
	fmt.Println("assigned")
	return nil
}

func (c *copier) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c *copier) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, isOpen := <-claim.Messages():
			if !isOpen {
				return nil
			}
			if err := c.copy(session, claim, message); err != nil {
				fail("copy", err)
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

// copy writes the message, and those that have arrived with it, in one transaction with their offset.
func (c *copier) copy(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim, message *sarama.ConsumerMessage) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := c.producer.BeginTxn(); err != nil {
		return err
	}
	last := message
	for count := 1; ; count++ {
		c.producer.Input() <- &sarama.ProducerMessage{
			Topic: c.output, Partition: message.Partition,
			Key: sarama.ByteEncoder(message.Key), Value: sarama.ByteEncoder(message.Value),
		}
		last = message
		if count == 50 || len(claim.Messages()) == 0 {
			break
		}
		message = <-claim.Messages()
	}
	if err := c.producer.AddMessageToTxn(last, group, nil); err != nil {
		return err
	}
	if err := c.producer.CommitTxn(); err != nil {
		return err
	}
	session.MarkMessage(last, "")
	return nil
}

func fail(where string, err error) {
	fmt.Println(where, err)
	os.Exit(1)
}

func main() {
	brokers, input, output := os.Args[1:2], os.Args[2], os.Args[3]
	config := sarama.NewConfig()
	config.Version = sarama.V2_8_0_0
	config.ClientID = "sarama"
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Transaction.ID = os.Args[4]
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewAsyncProducer(brokers, config)
	if err != nil {
		fail("producer", err)
	}
	go func() {
		for err := range producer.Errors() {
			fail("send", err)
		}
	}()
	members, err := sarama.NewConsumerGroup(brokers, group, config)
	if err != nil {
		fail("group", err)
	}
	for {
		err := members.Consume(context.Background(), []string{input}, &copier{producer: producer, output: output})
		if err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			fail("consume", err)
		}
	}
}
