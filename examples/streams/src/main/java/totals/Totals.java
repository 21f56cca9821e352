package totals;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * A service that keeps what each account has spent, in a store of Kafka Streams.
 *
 * <p>It reads orders, and writes the total of an account once it has changed. The cache of Streams
 * leaves out totals that are followed by another one before the next commit. A failure ends the
 * process, and its supervisor starts it again.
 */
public final class Totals {
  private static final Duration CLOSE = Duration.ofSeconds(8);
  private static final JsonMapper JSON =
      JsonMapper.builder()
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
          .build();

  record Order(String id, long quantity, long priceCents) {}

  record Total(long orders, long totalCents) {
    Total plus(Order order) {
      return new Total(orders + 1, totalCents + order.quantity * order.priceCents);
    }
  }

  static Topology topology(String orders, String totals) {
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream(orders, Consumed.with(Serdes.String(), json(Order.class)))
        .groupByKey(Grouped.with(Serdes.String(), json(Order.class)))
        .aggregate(
            () -> new Total(0, 0),
            (account, order, total) -> total.plus(order),
            Materialized.<String, Total>as(Stores.persistentKeyValueStore("totals"))
                .withKeySerde(Serdes.String())
                .withValueSerde(json(Total.class)))
        .toStream()
        .to(totals, Produced.with(Serdes.String(), json(Total.class)));
    return builder.build();
  }

  static Properties settings() {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, env("APPLICATION_ID"));
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, env("KAFKA"));
    settings.put(StreamsConfig.STATE_DIR_CONFIG, env("STATE_DIR"));
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, env("GUARANTEE"));
    settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, env("COMMIT_INTERVAL_MS"));
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, env("CACHE_BYTES"));
    int session = Integer.parseInt(env("SESSION_TIMEOUT_MS"));
    settings.put(
        StreamsConfig.mainConsumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), session);
    settings.put(
        StreamsConfig.mainConsumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), session / 4);
    settings.put(
        StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG),
        env("TRANSACTION_TIMEOUT_MS"));
    return settings;
  }

  public static void main(String[] arguments) throws InterruptedException {
    KafkaStreams streams = new KafkaStreams(topology(env("ORDERS"), env("TOTALS")), settings());
    CountDownLatch failed = new CountDownLatch(1);
    streams.setStateListener(
        (state, before) -> {
          if (state == KafkaStreams.State.ERROR) {
            failed.countDown();
          }
        });
    Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(CLOSE)));
    streams.start();
    failed.await(); // SIGTERM ends the process before that
    System.exit(1);
  }

  private static <T> Serde<T> json(Class<T> type) {
    return Serdes.serdeFrom(
        (topic, value) -> {
          try {
            return value == null ? null : JSON.writeValueAsBytes(value);
          } catch (IOException error) {
            throw new SerializationException(error);
          }
        },
        (topic, bytes) -> {
          try {
            return bytes == null ? null : JSON.readValue(bytes, type);
          } catch (IOException error) {
            throw new SerializationException(error);
          }
        });
  }

  private static String env(String name) {
    String value = System.getenv(name);
    if (value == null) {
      throw new IllegalStateException("the variable " + name + " is not set");
    }
    return value;
  }
}
