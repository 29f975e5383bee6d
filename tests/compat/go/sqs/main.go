// What a program does with a standard queue and a FIFO queue, by AWS's SDK, which checks the digests; prints a line for each step.
package main

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

var background = context.Background()

func main() {
	endpoint, key, secret, name := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	client := connect(endpoint, key, secret)
	standard(client, name)
	fifo(client, name+".fifo")
	_, err := connect(endpoint, key, "another secret").ListQueues(background, &sqs.ListQueuesInput{})
	say("wrong secret", refusal(err))
}

func connect(endpoint, key, secret string) *sqs.Client {
	return sqs.New(sqs.Options{
		BaseEndpoint: &endpoint,
		Region:       "eu-west-1",
		Credentials:  credentials.NewStaticCredentialsProvider(key, secret, ""),
	})
}

func standard(client *sqs.Client, name string) {
	made := must(client.CreateQueue(background, &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"VisibilityTimeout": "60"}, Tags: map[string]string{"team": "red"},
	}))
	url := made.QueueUrl
	found := must(client.GetQueueUrl(background, &sqs.GetQueueUrlInput{QueueName: &name}))
	say("found", *found.QueueUrl == *url)
	tags := must(client.ListQueueTags(background, &sqs.ListQueueTagsInput{QueueUrl: url})).Tags
	say("tags", fmt.Sprintf("{team=%s}", tags["team"]))
	body := "héllo <&>\r\n"
	sent := must(client.SendMessage(background, &sqs.SendMessageInput{
		QueueUrl: url, MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			"number": {DataType: aws.String("Number"), StringValue: aws.String("5")},
			"bytes":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
		},
	}))
	digest := md5.Sum([]byte(body))
	say("sent", *sent.MD5OfMessageBody == hex.EncodeToString(digest[:]))
	message := receive(client, url, 1, 5)[0]
	say("received", *message.Body == body && *message.MessageId == *sent.MessageId &&
		*message.MessageAttributes["number"].StringValue == "5" &&
		bytes.Equal(message.MessageAttributes["bytes"].BinaryValue, []byte{0, 255}) &&
		*message.MD5OfMessageAttributes == *sent.MD5OfMessageAttributes)
	say("count", message.Attributes["ApproximateReceiveCount"])
	say("hidden", len(receive(client, url, 1, 0)) == 0)
	must(client.ChangeMessageVisibility(background, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: url, ReceiptHandle: message.ReceiptHandle, VisibilityTimeout: 0,
	}))
	again := receive(client, url, 1, 5)[0]
	say("count", again.Attributes["ApproximateReceiveCount"])
	must(client.DeleteMessage(background, &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: again.ReceiptHandle}))
	sender := make(chan bool)
	go func() {
		must(client.SendMessage(background, &sqs.SendMessageInput{QueueUrl: url, MessageBody: aws.String("late"), DelaySeconds: 1}))
		sender <- true
	}()
	say("long poll", *receive(client, url, 1, 20)[0].Body)
	<-sender
	must(client.PurgeQueue(background, &sqs.PurgeQueueInput{QueueUrl: url}))
	_, err := client.PurgeQueue(background, &sqs.PurgeQueueInput{QueueUrl: url})
	var inProgress *types.PurgeQueueInProgress
	if errors.As(err, &inProgress) {
		say("purged", status(err))
	}
	must(client.DeleteQueue(background, &sqs.DeleteQueueInput{QueueUrl: url}))
	_, err = client.GetQueueUrl(background, &sqs.GetQueueUrlInput{QueueName: &name})
	var missing *types.QueueDoesNotExist
	if errors.As(err, &missing) {
		say("deleted", missing.ErrorCode())
	}
}

func fifo(client *sqs.Client, name string) {
	made := must(client.CreateQueue(background, &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"},
	}))
	url := made.QueueUrl
	batch := &sqs.SendMessageBatchInput{QueueUrl: url}
	for number := 0; number < 10; number++ {
		batch.Entries = append(batch.Entries, types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(number)), MessageBody: aws.String(fmt.Sprint("m", number)),
			MessageGroupId: aws.String(fmt.Sprint("g", number%2)),
		})
	}
	first, second := must(client.SendMessageBatch(background, batch)), must(client.SendMessageBatch(background, batch))
	same := len(first.Successful) == 10
	for index, entry := range first.Successful {
		same = same && *entry.MessageId == *second.Successful[index].MessageId
	}
	say("deduplicated", same)
	messages := receive(client, url, 10, 5)
	deletes := &sqs.DeleteMessageBatchInput{QueueUrl: url}
	groups := map[string][]string{}
	for index, message := range messages {
		group := message.Attributes["MessageGroupId"]
		groups[group] = append(groups[group], *message.Body)
		deletes.Entries = append(deletes.Entries, types.DeleteMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(index)), ReceiptHandle: message.ReceiptHandle,
		})
	}
	say("g0", "["+strings.Join(groups["g0"], ", ")+"]")
	say("g1", "["+strings.Join(groups["g1"], ", ")+"]")
	failed := must(client.DeleteMessageBatch(background, deletes)).Failed
	say("left", len(failed)+len(receive(client, url, 1, 0)))
}

func receive(client *sqs.Client, url *string, countMax, waitSeconds int32) []types.Message {
	return must(client.ReceiveMessage(background, &sqs.ReceiveMessageInput{
		QueueUrl: url, MaxNumberOfMessages: countMax, WaitTimeSeconds: waitSeconds, MessageAttributeNames: []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})).Messages
}

func refusal(err error) string {
	var said smithy.APIError
	if err == nil {
		return "taken"
	}
	if !errors.As(err, &said) {
		return err.Error()
	}
	return fmt.Sprint(status(err), " ", said.ErrorCode())
}

func status(err error) int {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		return response.HTTPStatusCode()
	}
	return 0
}

func must[T any](answer T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return answer
}

func say(what string, value any) {
	fmt.Printf("%s: %v\n", what, value)
}
