// franz-go: see PROTOCOL.md.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const deadline = 100 * time.Second

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func main() {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		var count int
		if fields[0] == "produce" {
			count, err = produce(in, fields[1], fields[2], fields[3], number(fields[4]))
		} else {
			count, err = consume(out, fields[1], fields[2], number(fields[3]), number(fields[4]), fields[5])
		}
		if err != nil {
			// After a failure the lines that follow are nobody's: the program ends.
			fmt.Fprintf(out, "error\t%s\n", strings.ReplaceAll(err.Error(), "\n", " "))
			out.Flush()
			os.Exit(1)
		}
		fmt.Fprintf(out, "ok\t%d\n", count)
		out.Flush()
	}
}

func produce(in *bufio.Reader, bootstrap, topic, codec string, count int) (int, error) {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ProducerBatchCompression(codecs[codec]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ProducerLinger(5*time.Millisecond),
		kgo.MetadataMinAge(100*time.Millisecond),
	)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	context, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	results := make(chan error, count)
	for i := 0; i < count; i++ {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		record := parsed(strings.TrimSuffix(line, "\n"))
		record.Topic = topic
		client.Produce(context, record, func(_ *kgo.Record, err error) { results <- err })
	}
	for i := 0; i < count; i++ {
		if err := <-results; err != nil {
			return 0, err
		}
	}
	return count, nil
}

func consume(out *bufio.Writer, bootstrap, topic string, partitions, count int, group string) (int, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	if group == "-" {
		offsets := map[int32]kgo.Offset{}
		for i := 0; i < partitions; i++ {
			offsets[int32(i)] = kgo.NewOffset().AtStart()
		}
		options = append(options, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}))
	} else {
		options = append(options, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	context, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	received := 0
	for received < count {
		fetches := client.PollFetches(context)
		if err := fetches.Err(); err != nil {
			return 0, fmt.Errorf("%d of %d records, then: %w", received, count, err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			received++
			out.WriteString(line(record))
		})
	}
	if group != "-" {
		return received, client.CommitUncommittedOffsets(context)
	}
	return received, nil
}

func parsed(line string) *kgo.Record {
	fields := strings.Split(line, "\t")
	record := &kgo.Record{
		Partition: int32(number(fields[0])),
		Timestamp: time.UnixMilli(int64(number(fields[2]))),
		Key:       bytes(fields[3]),
		Value:     bytes(fields[4]),
	}
	for _, pair := range strings.Split(fields[5], ",") {
		if name, value, found := strings.Cut(pair, "="); found {
			header := kgo.RecordHeader{Key: string(bytes(name)), Value: bytes(value)}
			record.Headers = append(record.Headers, header)
		}
	}
	return record
}

func line(record *kgo.Record) string {
	headers := make([]string, len(record.Headers))
	for i, header := range record.Headers {
		headers[i] = hex.EncodeToString([]byte(header.Key)) + "=" + text(header.Value)
	}
	return fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s\n", record.Partition, record.Offset, record.Timestamp.UnixMilli(),
		text(record.Key), text(record.Value), strings.Join(headers, ","))
}

func number(text string) int {
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return int(value)
}

func bytes(text string) []byte {
	if text == "-" {
		return nil
	}
	value, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return value
}

func text(bytes []byte) string {
	if bytes == nil {
		return "-"
	}
	return hex.EncodeToString(bytes)
}
