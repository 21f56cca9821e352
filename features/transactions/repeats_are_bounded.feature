@transactions
Feature: At least once repeats at most one commit interval
  After a crash only that comes again whose input was not committed.
  Documented in: beyond the articles. It is what bounds the duplicates that at_least_once allows.
  Broken by: committing before the output is acknowledged, or starting from an older position than the committed one.
  Costs: one commit an interval.

  @G47.repeats-above-the-commit
  Scenario Outline: no output comes again whose input was committed at the crash
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts
    And it is killed between output and commit
    Then the visible outputs are the fold of the committed input
    When it starts again and drains its input
    Then nothing comes again whose input was committed at the kill
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | relay   | at_least_once |

  @G47.commits-what-came-out
  Scenario Outline: what was committed at the crash had come out before
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts
    And it is killed after a commit
    Then the visible outputs are the fold of the committed input
    When 1000 entries over 64 accounts arrive in its input
    And it starts again and drains its input
    Then nothing comes again whose input was committed at the kill
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | at_least_once |
