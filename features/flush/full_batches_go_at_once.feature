@flush
Feature: A full batch goes out at once
  A customer's batch goes out when it holds as many events as the batch size says, and no more.
  Documented in: Kafka Streams Stateful Ingestion with Processor API, "The Problem".
  Broken by: a full batch that waits for the clock, a whole read that is sent at once, or events that are sent alone.
  Costs: a count for each customer.

  @G17.full-batches @one-mode @timed
  Scenario Outline: only full batches go out before the interval is over
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 60000 ms   |
    And 4000 records over 40 keys are in its input
    When the application starts
    Then exactly the full batches are out within 4 seconds
    When 4000 records over 40 keys arrive
    Then exactly the full batches are out within 4 seconds
    And no batch is too large or goes out too early
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |

  @G20.no-topics @one-mode
  Scenario Outline: events are batched without repartition and changelog topics
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 1000 ms    |
    And 4000 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And it keeps no internal topic
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |
