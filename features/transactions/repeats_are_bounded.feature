@transactions
Feature: At least once repeats at most one commit interval
  After a crash only outputs come again whose input was not committed.
  Documented in: beyond the articles. It is what bounds the duplicates that at_least_once allows.
  Broken by: committing before the output is acknowledged, or starting from an older position than the committed one.
  Costs: one commit an interval.

  @G47.repeats-above-the-commit
  Scenario Outline: no output comes again whose input was committed at the crash
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed between output and commit
    Then the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then no output is repeated whose input was committed at the kill
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | map   | at_least_once |

  @G47.commits-what-came-out
  Scenario Outline: outputs whose input was committed at the crash had come out before
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed after a commit
    Then the visible outputs are the fold of the committed input
    When 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then no output is repeated whose input was committed at the kill
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

  @G47.a-silent-leader @cluster
  Scenario Outline: outputs whose input was committed while one of their leaders was silent had come out
    Given a <shape> in mode <mode>
    # a commit waits for as long as the silent broker is an in-sync replica; that ends no session
    And its configuration is:
      | session timeout | 10000 ms |
    And 20000 records over 64 keys are in its input
    When the application starts
    And the application is killed with a leader of its outputs silent
    Then the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
