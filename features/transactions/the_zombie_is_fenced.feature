@transactions
Feature: A restart settles the old transaction and fences the zombie
  Whoever comes back after its successor has taken over emits nothing, and no reader waits for what it left open.
  Documented in: Enabling Exactly-Once in Kafka Streams, "How Kafka Streams Guarantees Exactly-Once Processing".
  Broken by: a new transactional id on every start, or offsets sent without the group's generation.
  Costs: one init of transactions a start.

  @G24.zombie @one-program
  Scenario Outline: an instance that comes back after its successor took over emits nothing
    # the timeout is longer than any takeover: nobody but the successor settles the open transaction
    Given <program> in mode <mode> on 4 partitions, with a transaction timeout of 15000 ms
    And 20000 entries over 20000 accounts wait in its input
    When it starts
    And it is paused with a transaction open, and a successor drains its input
    And the paused instance goes on
    Then nothing of the paused instance is visible
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | relay   | exactly_once |
      | ledger  | exactly_once |

  @G24.late-commit @wire
  Scenario Outline: a commit that arrives after the successor took over commits nothing
    # the timeout is longer than any takeover: nobody but the successor settles the open transaction
    Given <program> in mode <mode> on 4 partitions, with a transaction timeout of 15000 ms, with a proxy in between
    And 4000 entries over 64 accounts wait in its input
    When it starts
    And it is killed with its next EndTxn on the way, which arrives when a successor has drained its input
    Then no output stands there twice
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode         |
      | relay   | exactly_once |

    @full
    Examples:
      | program | mode         |
      | ledger  | exactly_once |

  @G24.readers-pass
  Scenario Outline: readers pass the transaction of a dead instance within its timeout
    Given <program> in mode <mode> on 4 partitions
    And 20000 entries over 20000 accounts wait in its input
    When it starts
    And it is killed with a transaction open, and starts again at once
    # the transaction timeout of 3000 ms, and the broker's sweep
    Then readers wait 4500 ms at most for the transaction that it left
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | ledger  | exactly_once |
