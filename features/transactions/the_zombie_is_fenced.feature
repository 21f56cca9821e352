@transactions
Feature: A restart settles the old transaction and fences the zombie
  An instance that comes back after its successor has taken over emits nothing, and no reader waits for the transaction that it left open.
  Documented in: Enabling Exactly-Once in Kafka Streams, "How Kafka Streams Guarantees Exactly-Once Processing".
  Broken by: a new transactional id on every start, or offsets sent without the group's generation.
  Costs: one InitProducerId a start.

  @G24.zombie @one-program
  Scenario Outline: an instance that comes back after its successor took over emits nothing
    # the timeout is longer than any takeover: only the successor settles the open transaction
    Given a <shape> in mode <mode>
    And its configuration is:
      | transaction timeout | 15000 ms |
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the application is paused with a transaction open
    And a successor takes its place
    And the successor drains its input
    And the paused instance goes on
    Then the paused instance adds no visible output
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | map   | exactly_once |
      | fold  | exactly_once |

  @G24.late-commit @wire
  Scenario Outline: a commit that arrives after the successor took over commits nothing
    # the timeout is longer than any takeover: only the successor settles the open transaction
    Given a <shape> in mode <mode>
    And its configuration is:
      | transaction timeout | 15000 ms |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed with its next EndTxn on the way
    And a successor takes its place
    And the successor drains its input
    And the delayed EndTxn arrives
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode         |
      | map   | exactly_once |

    @full
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G24.readers-pass
  Scenario Outline: readers pass the transaction of a dead instance within its timeout
    Given a <shape> in mode <mode>
    And its configuration is:
      | transaction timeout | 3000 ms |
    And its supervisor restarts it as soon as it is killed
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the application is killed with a transaction open
    # the transaction timeout, and the broker's sweep
    Then readers wait at most 4500 ms for the transaction that it left
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G70.slept-through-its-transaction @beyond
  Scenario Outline: an instance that slept through its transaction timeout goes on or stops loudly
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly while it drains
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the application is paused until the broker aborts its transaction
    And the application drains its input
    And the application stays idle for 1 second
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | fold  | exactly_once |
