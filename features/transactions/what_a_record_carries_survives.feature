@transactions
Feature: Timestamps, headers and lineage are preserved through a crash
  What a record carries beside its value reaches the output, also where the output is made a second time.
  Documented in: beyond the articles. Downstream windows and traces rest on it.
  Broken by: stamping a record with the time of its replay, or dropping headers.
  Costs: nothing.

  @G60.preserved-through-a-crash
  Scenario Outline: outputs made after a crash carry the timestamps, headers and chains of their inputs
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts
    And it is killed <moment>
    And 1000 entries over 64 accounts arrive in its input
    And it starts again and drains its input
    Then every output carries its input's id, timestamp and headers, and the chain of positions
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | moment                    |
      | relay   | at_least_once | between output and commit |
      | ledger  | exactly_once  | after a commit            |
