@transactions
Feature: The fold of the changelog is the live state at every committed point
  A reader of the table's topic and a query to the design see the same, also after a crash.
  Documented in: beyond the articles. They read the changelog as a table, and take for granted that it is one.
  Broken by: a state that goes on without its changelog, or a changelog whose rows are counted again.
  Costs: a state that is read back from the changelog, or kept where it can be compared with it.

  @G61.after-a-crash @one-mode
  Scenario Outline: after a crash the changelog, the committed input and the answers agree
    Given <program> in mode <mode>
    And 100 names over 64 keys are in its input
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed after a commit
    Then the visible outputs are the fold of the committed input
    When 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then it answers every key with the last row of its table within 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |
