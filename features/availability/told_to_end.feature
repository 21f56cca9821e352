@availability
Feature: A design that is told to end does so in time
  It finishes what it has begun, commits it, and ends; being told again does no harm.
  Documented in: beyond the articles. Every release, and every cluster that moves its load, tells a design to end.
  Broken by: a close that waits for an empty input, or a second one that closes what is closed.
  Costs: one commit.

  @G51.in-the-middle-of-its-input
  Scenario Outline: a design stops while entries arrive, and goes on from there
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    And it is stopped gracefully while more of them arrive, and told so twice
    Then the visible outputs are the fold of the committed input
    When it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | exactly_once  |
