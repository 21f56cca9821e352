@transactions
Feature: Timestamps, headers and lineage are preserved through a crash
  The timestamp, headers and lineage of a record reach the output, also where the output is made a second time.
  Documented in: beyond the articles. Downstream windows and traces rest on it.
  Broken by: stamping a record with the time of its replay, or dropping headers.
  Costs: nothing.

  @G60.preserved-through-a-crash
  Scenario Outline: outputs made after a crash carry the timestamps, headers and chains of their inputs
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <moment>
    And 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then every output carries the id, timestamp, headers and positions of its input
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | moment                    |
      | relay   | at_least_once | between output and commit |
      | ledger  | exactly_once  | after a commit            |
