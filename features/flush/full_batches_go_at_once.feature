@flush
Feature: A full batch goes out at once
  A customer's batch goes out when it holds as many events as the threshold says, and holds just as many.
  Documented in: Kafka Streams Stateful Ingestion with Processor API, "The Problem".
  Broken by: waiting for the clock with a full batch, sending a whole read at once, or sending every event alone.
  Costs: a count for each customer.

  @G17.full-batches @one-mode
  Scenario Outline: only full batches go out before the interval is over
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 60000 ms
    And 4000 events of 40 customers wait in its input
    When it starts
    Then within 4 seconds every full batch is out, and nothing else
    When 4000 events of 40 customers arrive in its input
    Then within 4 seconds every full batch is out, and nothing else
    And no batch is larger than the threshold, and none below it goes out early
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |

  @G20.no-topics @one-mode
  Scenario Outline: events are batched without repartition and changelog topics
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 1000 ms
    And 4000 events of 40 customers wait in its input
    When it starts and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And it keeps no topic of its own
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |
