@transactions
Feature: What was aborted upstream is never counted
  A record of an aborted transaction has no effect in either mode, also where it is the last thing in its partition.
  Documented in: beyond the articles. Kafka's read_committed isolation promises it to a consumer that asks for it.
  Broken by: reading uncommitted, which is the consumer's default.
  Costs: readers wait for open transactions upstream.

  @G40.aborted-upstream
  Scenario Outline: an aborted entry changes nothing
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | relay   | exactly_once  |
      | ledger  | at_least_once |
      | ledger  | exactly_once  |
