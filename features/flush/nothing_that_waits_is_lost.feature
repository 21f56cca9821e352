@flush
Feature: Events that wait for their batch are not lost
  A graceful close sends the events that wait, once; a crash keeps them. Nulls are left out, and a flush begins the next batch empty.
  Documented in: Kafka Streams Stateful Ingestion with Processor API, "The Solution - Processor API"; the crash beyond it.
  Broken by: a close that forgets the events that wait, offsets committed past events in memory, or a count that is not reset.
  Costs: the events that wait are written to disk with every commit.

  @G19.graceful-close @timed
  Scenario Outline: a graceful close sends on everything, and a restart repeats none of it
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 60000 ms   |
    And 4000 records over 40 keys are in its input
    When the application starts
    Then exactly the full batches are out within 4 seconds
    When the application is stopped gracefully
    Then the outputs match the model in order and count under <mode>
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | batch | exactly_once  |

  @G19.nulls-are-left-out @one-mode
  Scenario Outline: null values among the events are left out
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 1000 ms    |
    # nulls and aborted records stand between the events of every workload
    And 4000 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And no batch is too large or goes out too early
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |

  @G19.a-flush-begins-anew @one-mode @timed
  Scenario Outline: after a flush by the clock both batch and count are empty
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 1000 ms    |
    # few: the clock has a batch of each customer to flush
    And 1000 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    And 1000 records over 40 keys arrive
    Then no record waits longer than the batch interval plus 3 seconds
    And no batch is too large or goes out too early
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |

  @G68.crash-before-the-flush @timed
  Scenario Outline: a crash loses no event that waits for its batch
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 4000 ms    |
    And 4000 records over 40 keys are in its input
    When the application starts
    And the application is killed with events waiting
    Then the visible outputs are the fold of the committed input
    When the application starts
    Then no record waits longer than the batch interval plus 3 seconds
    And the outputs match the model in order and count under <mode>
    And no batch is too large or goes out too early
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |
