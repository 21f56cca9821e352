import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A relay with Kafka's own clients: every record of `input` goes to `output`, with one hop more. */
public final class Relay implements ConsumerRebalanceListener {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> MODES = List.of("at_least_once", "exactly_once");

    /** A record that cannot be read. */
    private static final class Poison extends RuntimeException {
        Poison(String text) {
            super(text);
        }
    }

    private final String output;
    private final boolean exactlyOnce;
    private final Duration interval;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;
    private final CountDownLatch held = new CountDownLatch(1);
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile boolean stopping;

    private Relay(JsonNode start) {
        String application = start.get("application_id").asText();
        int sessionMs = start.get("session_timeout_ms").asInt();
        output = start.get("topics").get("output").asText();
        exactlyOnce = start.path("mode").asText().equals("exactly_once");
        interval = Duration.ofMillis(start.path("parameters").path("commit_interval_ms").asInt(100));
        Map<String, Object> writes = new HashMap<>();
        writes.put("bootstrap.servers", start.get("bootstrap").asText());
        writes.put("enable.idempotence", true);
        writes.put("acks", "all");
        // A broker takes any sequence number as the first one of a producer. If the first batch is
        // refused while a second one is under way, the first one is lost.
        writes.put("max.in.flight.requests.per.connection", 1);
        writes.put("request.timeout.ms", 10_000); // a connection that is silent is given up
        if (exactlyOnce) {
            writes.put("transactional.id", application);
            writes.put("transaction.timeout.ms", start.get("transaction_timeout_ms").asInt());
        }
        producer =
                new KafkaProducer<>(writes, new ByteArraySerializer(), new ByteArraySerializer());
        if (exactlyOnce) { // the same id at every start: a successor fences its predecessor
            producer.initTransactions();
        }
        Map<String, Object> reads = new HashMap<>();
        reads.put("bootstrap.servers", start.get("bootstrap").asText());
        reads.put("group.id", application);
        reads.put("isolation.level", "read_committed");
        reads.put("enable.auto.commit", false);
        reads.put("auto.offset.reset", start.get("offset_reset").asText());
        reads.put("session.timeout.ms", sessionMs);
        reads.put("heartbeat.interval.ms", sessionMs / 4);
        reads.put("fetch.max.wait.ms", 100);
        consumer =
                new KafkaConsumer<>(
                        reads, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(Set.of(start.get("topics").get("input").asText()), this);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
        // Each batch is committed before the next poll, so nothing is left to commit.
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
        if (!assigned.isEmpty()) {
            held.countDown();
        }
    }

    /** Relay batch after batch, until told to stop. */
    private void run() {
        try {
            while (!stopping) {
                step(consumer.poll(interval));
            }
            consumer.close();
            producer.close();
            ended.countDown();
        } catch (Poison error) {
            giveUp("poison", error);
        } catch (ProducerFencedException | InvalidProducerEpochException error) {
            giveUp("fenced", error);
        } catch (Exception error) {
            giveUp("storage", error);
        }
    }

    /** Write a batch, and commit its offsets. */
    private void step(ConsumerRecords<byte[], byte[]> records) throws Exception {
        if (records.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (TopicPartition place : records.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> own = records.records(place);
            offsets.put(place, new OffsetAndMetadata(own.get(own.size() - 1).offset() + 1));
        }
        if (!exactlyOnce) {
            write(records);
            commit(offsets);
            return;
        }
        producer.beginTransaction();
        try {
            write(records);
            producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
            producer.commitTransaction();
        } catch (Exception error) {
            abort(error);
            throw error;
        }
    }

    /** Write records until each is acknowledged. */
    private void write(ConsumerRecords<byte[], byte[]> records) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            sent.add(producer.send(transformed(record)));
        }
        producer.flush();
        for (Future<RecordMetadata> each : sent) {
            try {
                each.get();
            } catch (ExecutionException error) {
                throw error.getCause() instanceof KafkaException cause ? cause : error;
            }
        }
    }

    /** Commit offsets, unless the partitions have gone to another member. */
    private void commit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        try {
            consumer.commitSync(offsets);
        } catch (CommitFailedException | RebalanceInProgressException error) {
            error.printStackTrace(); // the records are read again, here or by another member
        }
    }

    /** Leave no transaction open, if its producer still may end it. */
    private void abort(Exception reason) {
        try {
            producer.abortTransaction();
        } catch (KafkaException error) {
            reason.addSuppressed(error);
        }
    }

    private ProducerRecord<byte[], byte[]> transformed(ConsumerRecord<byte[], byte[]> record) {
        return new ProducerRecord<>(
                output, null, record.timestamp(), record.key(), withHop(record), record.headers());
    }

    /**
     * Append a record's position to the chain of its envelope.
     *
     * <p>A repeated field of protobuf may be continued behind all others.
     */
    private static byte[] withHop(ConsumerRecord<byte[], byte[]> record) {
        String at = record.topic() + "-" + record.partition() + "@" + record.offset();
        if (record.key() == null || record.value() == null) {
            throw new Poison(at + " has no key or no value");
        }
        if (!isEnvelope(record.value())) {
            throw new Poison(at + " holds no envelope");
        }
        byte[] topic = record.topic().getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream hop = new ByteArrayOutputStream();
        hop.write(1 << 3 | 2);
        number(hop, topic.length);
        hop.writeBytes(topic);
        hop.write(2 << 3);
        number(hop, record.partition());
        hop.write(3 << 3);
        number(hop, record.offset());
        ByteArrayOutputStream value = new ByteArrayOutputStream();
        value.writeBytes(record.value());
        value.write(3 << 3 | 2);
        number(value, hop.size());
        value.writeBytes(hop.toByteArray());
        return value.toByteArray();
    }

    private static void number(ByteArrayOutputStream out, long value) {
        for (long left = value; ; left >>>= 7) {
            if (left < 128) {
                out.write((int) left);
                return;
            }
            out.write((int) (left & 127 | 128));
        }
    }

    /** Tell whether bytes are whole fields 1 to 4, each of its own wire type. */
    private static boolean isEnvelope(byte[] value) {
        int at = 0;
        while (at < value.length) {
            int tag = value[at++];
            if (tag != (1 << 3 | 2) && tag != 2 << 3 && tag != (3 << 3 | 2) && tag != (4 << 3 | 2)) {
                return false;
            }
            long found = 0;
            int shift = 0;
            while (true) {
                if (at == value.length || shift > 63) {
                    return false;
                }
                byte each = value[at++];
                found |= (long) (each & 127) << shift;
                shift += 7;
                if (each >= 0) {
                    break;
                }
            }
            if ((tag & 7) == 2) {
                if (found < 0 || found > value.length - at) {
                    return false;
                }
                at += (int) found;
            }
        }
        return true;
    }

    private static synchronized void say(Map<String, Object> said) {
        try {
            System.out.println(JSON.writeValueAsString(said));
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    private static Map<String, Object> message(String type, Object... fields) {
        Map<String, Object> said = new LinkedHashMap<>();
        said.put("type", type);
        for (int at = 0; at < fields.length; at += 2) {
            said.put((String) fields[at], fields[at + 1]);
        }
        return said;
    }

    private static void giveUp(String kind, Exception error) {
        error.printStackTrace();
        say(message("failed", "kind", kind, "message", String.valueOf(error)));
        Runtime.getRuntime().halt(1);
    }

    /** Start, and answer when partitions are held. */
    private static Relay started(JsonNode start) throws InterruptedException {
        Relay relay = new Relay(start);
        new Thread(relay::run, "relay").start();
        if (!relay.held.await(1, TimeUnit.MINUTES)) {
            throw new IllegalStateException("no partition was assigned within a minute");
        }
        String application = start.get("application_id").asText();
        say(
                message(
                        "ready",
                        "consumer_group",
                        application,
                        "transactional_id_prefix",
                        application));
        return relay;
    }

    private static void stop(Relay relay, JsonNode asked) throws InterruptedException {
        relay.stopping = true;
        boolean inTime = relay.ended.await(asked.get("deadline_ms").asLong(), TimeUnit.MILLISECONDS);
        say(
                inTime
                        ? message("stopped")
                        : message("error", "definite", false, "message", "it does not end in time"));
    }

    public static void main(String[] names) throws Exception {
        Relay relay = null;
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode asked = JSON.readTree(line);
            switch (asked.get("type").asText()) {
                case "hello" ->
                        say(
                                message(
                                        "hello", "protocol", 1, "name", names[0], "version",
                                        names[1], "language", "java", "programs", List.of("relay"),
                                        "modes", MODES));
                case "start" -> {
                    try {
                        relay = started(asked);
                    } catch (Exception error) {
                        giveUp("storage", error);
                    }
                }
                case "stop" -> {
                    stop(relay, asked);
                    System.exit(0);
                }
                default ->
                        say(
                                message(
                                        "error", "definite", true, "message",
                                        asked.get("type").asText() + " is not offered"));
            }
        }
    }
}
