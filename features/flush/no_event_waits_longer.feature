@flush
Feature: No event waits longer than the interval
  A batch that is not full goes out when its first event has waited for the interval, whether more arrives or not.
  Documented in: Kafka Streams Stateful Ingestion with Processor API, "The Problem"; without and under traffic beyond it.
  Broken by: a clock that only traffic drives, an interval that each event restarts, or a cache that flushes at its own time.
  Costs: a timer, and smaller batches for slow customers.

  @G18.slow-customers @one-mode @timed
  Scenario Outline: an event that is the only one of its customer goes out within the interval
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 1000 ms    |
    # few: each customer has one event, so no batch is full
    And 400 records over 400 keys are in its input
    When the application starts
    Then no record waits longer than the batch interval plus 3 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |

  @G50.without-traffic @one-mode @timed
  Scenario Outline: a single event goes out with no further traffic
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 1000 ms    |
    And 4000 records over 40 keys are in its input
    When the application starts
    Then no record waits longer than the batch interval plus 3 seconds
    When a single record arrives
    Then no record waits longer than the batch interval plus 3 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |

  @G50.steady-traffic @one-mode @timed
  Scenario Outline: an event every half interval does not push the flush back
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 1000 ms    |
    # few: the events of one customer that follow count
    And 400 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    And 12 records of one key arrive 500 ms apart
    Then no record waits longer than the batch interval plus 3 seconds
    And no batch is too large or goes out too early
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |

  @G56.the-wall-clock-jumps @one-mode @timed
  Scenario Outline: a jump of the wall clock neither drops a flush nor makes one early
    Given a <shape> in mode <mode>
    And its wall clock can be set
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 1000 ms    |
    # few: the events of one customer that follow count
    And 400 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    # three seconds each: a process sees the jump in the second or third of them
    And its wall clock jumps 3600 seconds forward
    And 15 records of one key arrive 200 ms apart
    And its wall clock jumps 7200 seconds back
    And 15 records of one key arrive 200 ms apart
    Then no record waits longer than the batch interval plus 3 seconds
    And no batch is too large or goes out too early
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |
      | batch | exactly_once  |
