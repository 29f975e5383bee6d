import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.BatchResultErrorEntry;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.MessageAttributeValue;
import software.amazon.awssdk.services.sqs.model.MessageSystemAttributeName;
import software.amazon.awssdk.services.sqs.model.PurgeQueueInProgressException;
import software.amazon.awssdk.services.sqs.model.QueueAttributeName;
import software.amazon.awssdk.services.sqs.model.QueueDoesNotExistException;
import software.amazon.awssdk.services.sqs.model.SendMessageBatchRequestEntry;
import software.amazon.awssdk.services.sqs.model.SendMessageResponse;
import software.amazon.awssdk.services.sqs.model.SqsException;

/** What a program does with a standard queue and a FIFO queue, by AWS's SDK, which checks the digests; prints a line for each step. */
public final class SqsRounds {
    public static void main(String[] arguments) throws Exception {
        String endpoint = arguments[0], name = arguments[3];
        try (SqsClient sqs = client(endpoint, arguments[1], arguments[2])) {
            standard(sqs, name);
            fifo(sqs, name + ".fifo");
        }
        try (SqsClient sqs = client(endpoint, arguments[1], "another secret")) {
            sqs.listQueues();
            System.out.println("wrong secret: taken");
        } catch (SqsException error) {
            System.out.println("wrong secret: " + error.statusCode() + " " + error.awsErrorDetails().errorCode());
        }
    }

    private static SqsClient client(String endpoint, String key, String secret) {
        return SqsClient.builder()
            .endpointOverride(URI.create(endpoint))
            .region(Region.EU_WEST_1)
            .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create(key, secret)))
            .httpClientBuilder(UrlConnectionHttpClient.builder())
            .build();
    }

    private static void standard(SqsClient sqs, String name) throws Exception {
        String url = sqs.createQueue(b -> b.queueName(name).attributes(Map.of(QueueAttributeName.VISIBILITY_TIMEOUT, "60"))
            .tags(Map.of("team", "red"))).queueUrl();
        say("found", url.equals(sqs.getQueueUrl(b -> b.queueName(name)).queueUrl()));
        say("tags", sqs.listQueueTags(b -> b.queueUrl(url)).tags());
        Map<String, MessageAttributeValue> attributes = Map.of(
            "number", MessageAttributeValue.builder().dataType("Number").stringValue("5").build(),
            "bytes", MessageAttributeValue.builder().dataType("Binary").binaryValue(SdkBytes.fromByteArray(new byte[] {0, -1})).build());
        String body = "h\u00e9llo <&>\r\n";
        SendMessageResponse sent = sqs.sendMessage(b -> b.queueUrl(url).messageBody(body).messageAttributes(attributes));
        say("sent", sent.md5OfMessageBody().equals(md5(body)));
        Message message = sqs.receiveMessage(b -> b.queueUrl(url).waitTimeSeconds(5).messageAttributeNames("All")
            .messageSystemAttributeNames(MessageSystemAttributeName.ALL)).messages().get(0);
        say("received", message.body().equals(body) && message.messageId().equals(sent.messageId())
            && message.messageAttributes().equals(attributes)
            && message.md5OfMessageAttributes().equals(sent.md5OfMessageAttributes()));
        say("count", message.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT));
        say("hidden", sqs.receiveMessage(b -> b.queueUrl(url)).messages().isEmpty());
        sqs.changeMessageVisibility(b -> b.queueUrl(url).receiptHandle(message.receiptHandle()).visibilityTimeout(0));
        Message again = sqs.receiveMessage(b -> b.queueUrl(url).waitTimeSeconds(5)
            .messageSystemAttributeNames(MessageSystemAttributeName.ALL)).messages().get(0);
        say("count", again.attributes().get(MessageSystemAttributeName.APPROXIMATE_RECEIVE_COUNT));
        sqs.deleteMessage(b -> b.queueUrl(url).receiptHandle(again.receiptHandle()));
        Thread sender = new Thread(() -> sqs.sendMessage(b -> b.queueUrl(url).messageBody("late").delaySeconds(1)));
        sender.start();
        List<Message> late = sqs.receiveMessage(b -> b.queueUrl(url).waitTimeSeconds(20)).messages();
        sender.join();
        say("long poll", late.get(0).body());
        sqs.purgeQueue(b -> b.queueUrl(url));
        try {
            sqs.purgeQueue(b -> b.queueUrl(url));
        } catch (PurgeQueueInProgressException error) {
            say("purged", error.statusCode());
        }
        sqs.deleteQueue(b -> b.queueUrl(url));
        try {
            sqs.getQueueUrl(b -> b.queueName(name));
        } catch (QueueDoesNotExistException error) {
            say("deleted", error.awsErrorDetails().errorCode());
        }
    }

    private static void fifo(SqsClient sqs, String name) {
        String url = sqs.createQueue(b -> b.queueName(name).attributes(Map.of(
            QueueAttributeName.FIFO_QUEUE, "true", QueueAttributeName.CONTENT_BASED_DEDUPLICATION, "true"))).queueUrl();
        List<SendMessageBatchRequestEntry> entries = new ArrayList<>();
        for (int number = 0; number < 10; number++) {
            entries.add(SendMessageBatchRequestEntry.builder().id("" + number).messageBody("m" + number)
                .messageGroupId("g" + number % 2).build());
        }
        List<String> first = sqs.sendMessageBatch(b -> b.queueUrl(url).entries(entries)).successful().stream().map(e -> e.messageId()).toList();
        List<String> second = sqs.sendMessageBatch(b -> b.queueUrl(url).entries(entries)).successful().stream().map(e -> e.messageId()).toList();
        say("deduplicated", first.size() == 10 && first.equals(second));
        List<Message> messages = sqs.receiveMessage(b -> b.queueUrl(url).maxNumberOfMessages(10).waitTimeSeconds(5)
            .messageSystemAttributeNames(MessageSystemAttributeName.MESSAGE_GROUP_ID)).messages();
        for (String group : List.of("g0", "g1")) {
            say(group, messages.stream()
                .filter(m -> m.attributes().get(MessageSystemAttributeName.MESSAGE_GROUP_ID).equals(group)).map(Message::body).toList());
        }
        List<DeleteMessageBatchRequestEntry> done = new ArrayList<>();
        for (Message message : messages) {
            done.add(DeleteMessageBatchRequestEntry.builder().id("" + done.size()).receiptHandle(message.receiptHandle()).build());
        }
        List<BatchResultErrorEntry> failed = sqs.deleteMessageBatch(b -> b.queueUrl(url).entries(done)).failed();
        say("left", failed.size() + sqs.receiveMessage(b -> b.queueUrl(url)).messages().size());
    }

    private static String md5(String text) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(text.getBytes(StandardCharsets.UTF_8)));
    }

    private static void say(String what, Object value) {
        System.out.println(what + ": " + value);
    }
}
