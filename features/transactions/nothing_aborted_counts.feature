@transactions
Feature: A record that was aborted upstream is never counted
  A record of an aborted transaction has no effect in either mode, also where it is the last thing in its partition.
  Documented in: beyond the articles. Kafka's read_committed isolation promises it to a consumer that asks for it.
  Broken by: read_uncommitted, which is the consumer's default.
  Costs: readers wait for open transactions upstream.

  @G40.aborted-upstream
  Scenario Outline: an aborted entry changes nothing
    Given a <shape> in mode <mode>
    # every workload has aborted records, also at the end of each partition
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | map   | exactly_once  |
      | fold  | at_least_once |
      | fold  | exactly_once  |
