@inputs_and_disks @beyond
Feature: Who finds a gap in its input says so
  Retention deletes what nobody has read in time. Behind the gap every sum is wrong, and only who finds it can say where it is.
  Documented in: beyond the articles. Kafka's consumer is told that its offset is out of range, and by default goes on elsewhere without a word.
  Broken by: one setting for a first start and for an offset that is gone.
  Costs: somebody has to decide how it goes on.

  @G42.fallen-off-the-log @one-program
  Scenario Outline: a design whose committed offsets are no longer in the log stops loudly and says where
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    And it is stopped gracefully
    And 1000 entries over 64 accounts arrive in its input
    And half of what it has not read falls off the log
    And it starts again, unless it refuses to
    Then it stops loudly and names where
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | relay   | exactly_once  |
      | ledger  | at_least_once |
      | ledger  | exactly_once  |
