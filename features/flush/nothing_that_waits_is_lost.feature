@flush
Feature: What waits for its batch is not lost
  A graceful close sends on what waits, once; a crash keeps it; nulls are left out, and a flush begins the next batch empty.
  Documented in: Kafka Streams Stateful Ingestion with Processor API, "The Solution - Processor API"; the crash beyond it.
  Broken by: a close that forgets what waits, offsets committed past events that are kept in memory, or a count that is not reset.
  Costs: what waits is written down with every commit.

  @G19.graceful-close
  Scenario Outline: a graceful close sends on everything, and a restart repeats none of it
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 60000 ms
    And 4000 events of 40 customers wait in its input
    When it starts
    Then within 4 seconds every full batch is out, and nothing else
    When it is stopped gracefully
    Then the outputs are the model's, in the order and as often as <mode> allows
    When it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |

    @full
    Examples:
      | program | mode          |
      | batcher | exactly_once  |

  @G19.nulls-are-left-out @one-mode
  Scenario Outline: null values among the events are left out
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 1000 ms
    And 4000 events of 40 customers wait in its input
    When it starts and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And no batch is larger than the threshold, and none below it goes out early
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |

  @G19.a-flush-begins-anew @one-mode
  Scenario Outline: after a flush by the clock both batch and count are empty
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 1000 ms
    And 1000 events of 40 customers wait in its input
    When it starts and drains its input
    And 1000 events of 40 customers arrive in its input
    Then no event waits longer than the interval and 3 seconds
    And no batch is larger than the threshold, and none below it goes out early
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |

  @G68.crash-before-the-flush
  Scenario Outline: a crash loses no event that waits for its batch
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 4000 ms
    And 4000 events of 40 customers wait in its input
    When it starts
    And it is killed with events waiting
    Then the visible outputs are the fold of the committed input
    When it starts again
    Then no event waits longer than the interval and 3 seconds
    And the outputs are the model's, in the order and as often as <mode> allows
    And no batch is larger than the threshold, and none below it goes out early
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |
