@transactions
Feature: Lag reaches zero where the log ends in markers
  The end of a transaction takes an offset of its own, which no reader is given. A design that commits the offset after the last record
  that it was given stays behind by that offset for ever, and by all aborted records before it.
  Documented in: beyond the articles. The position of Kafka's own consumer passes markers; Kafka Streams once committed the record's (KAFKA-6607).
  Broken by: a commit only when records have come.
  Costs: a commit where no record came.

  @G41.ends-in-markers @one-program
  Scenario Outline: all of the log is committed, although its last offsets are no records
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    # one transaction: its markers come last
    And 100 aborted records over 64 keys arrive
    Then its committed offsets reach the end of the log within 5 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | map   | exactly_once  |
      | fold  | at_least_once |
      | fold  | exactly_once  |
