@transactions
Feature: What is done outside of Kafka is not exactly once
  No transaction takes back what was told to somebody outside: it comes again, or is told of what never came to be.
  Documented in: beyond the articles, where exactly-once ends with Kafka. Whoever calls a service for each output has to know it.
  Broken by: telling it after the commit, which loses it in a crash, and so promises even less.
  Costs: an effect outside that may come twice has to be idempotent.

  @G64.more-than-once
  Scenario Outline: after two crashes nothing is missing outside, and something is there too often
    Given <program> in mode <mode> on 4 partitions, telling each output outside of Kafka
    And 4000 entries over 4000 accounts wait in its input
    When it starts
    And it is killed after a commit
    And it starts again
    And 4000 entries over 4000 accounts arrive in its input
    And it is killed with a transaction open
    And it starts again
    And it drains its input, and rests for 1 seconds
    Then the outputs are the model's, in the order and as often as <mode> allows
    And all that is visible was told outside of Kafka, and more than that
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | ledger  | exactly_once |
