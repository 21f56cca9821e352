package costs;

import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ContainerCustomizer;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.event.ConsumerStoppedEvent;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import tools.jackson.databind.json.JsonMapper;

/**
 * A service that reads orders and writes what each of them costs.
 *
 * <p>If spring.kafka.producer.transaction-id-prefix is set, the container begins a transaction for
 * each batch, and commits the offsets of the orders in it.
 */
@SpringBootApplication
public class Costs {
  private final KafkaTemplate<String, String> kafka;
  private final JsonMapper json;
  private final String topic;

  record Order(String id, long quantity, long priceCents) {}

  record Cost(String order, long costCents) {}

  Costs(
      KafkaTemplate<String, String> kafka,
      JsonMapper json,
      @Value("${shop.costs}") String topic) {
    this.kafka = kafka;
    this.json = json;
    this.topic = topic;
  }

  @KafkaListener(topics = "${shop.orders}")
  void price(List<ConsumerRecord<String, String>> orders) {
    for (ConsumerRecord<String, String> each : orders) {
      Order order = json.readValue(each.value(), Order.class);
      Cost cost = new Cost(order.id(), order.quantity() * order.priceCents());
      kafka.send(topic, each.key(), json.writeValueAsString(cost));
    }
  }

  /**
   * A fenced producer has not written its batch. By default, the container reads the next one.
   *
   * <p>By default, offsets stay before the markers at the end of a partition as well.
   */
  @Bean
  static ContainerCustomizer<Object, Object, ConcurrentMessageListenerContainer<Object, Object>>
      stopsWhenFencedAndCommitsToTheEnd() {
    return container -> {
      container.getContainerProperties().setStopContainerWhenFenced(true);
      container.getContainerProperties().setFixTxOffsets(true);
    };
  }

  /** Ends the process with its consumer, so that the supervisor starts it again. */
  @EventListener
  void stopped(ConsumerStoppedEvent event) {
    if (event.getReason() != ConsumerStoppedEvent.Reason.NORMAL) {
      System.exit(1);
    }
  }

  public static void main(String[] arguments) {
    SpringApplication.run(Costs.class, arguments);
  }
}
