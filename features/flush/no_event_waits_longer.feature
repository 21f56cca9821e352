@flush
Feature: No event waits longer than the interval
  A batch below the threshold goes out when its first event has waited for the interval, whatever else arrives or does not.
  Documented in: Kafka Streams Stateful Ingestion with Processor API, "The Problem"; without and under traffic beyond it.
  Broken by: a clock that only traffic drives, an interval that each event begins anew, or a cache that flushes when it likes.
  Costs: a timer, and smaller batches for slow customers.

  @G18.slow-customers @one-mode
  Scenario Outline: customers with one event each have it within the interval
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 1000 ms
    And 400 events of 400 customers wait in its input
    When it starts
    Then no event waits longer than the interval and 3 seconds
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |

  @G50.without-traffic @one-mode
  Scenario Outline: a single event goes out with no further traffic
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 1000 ms
    And 4000 events of 40 customers wait in its input
    When it starts
    Then no event waits longer than the interval and 3 seconds
    When 1 events of one customer arrive 0 ms apart
    Then no event waits longer than the interval and 3 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |

  @G50.steady-traffic @one-mode
  Scenario Outline: an event every half interval does not push the flush back
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 1000 ms
    And 400 events of 40 customers wait in its input
    When it starts and drains its input
    And 12 events of one customer arrive 500 ms apart
    Then no event waits longer than the interval and 3 seconds
    And no batch is larger than the threshold, and none below it goes out early
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |

  @G56.the-wall-clock-jumps @one-mode
  Scenario Outline: a jump of the wall clock neither drops a flush nor makes one early
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 1000 ms
    And 400 events of 40 customers wait in its input
    When it starts under a wall clock that can be set and drains its input
    # three seconds each: a process sees the jump in the second of them or in the third
    And 15 events of one customer arrive 200 ms apart, while the wall clock jumps 3600 s forward
    And 15 events of one customer arrive 200 ms apart, while the wall clock jumps 7200 s back
    Then no event waits longer than the interval and 3 seconds
    And no batch is larger than the threshold, and none below it goes out early
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |
      | batcher | exactly_once  |
