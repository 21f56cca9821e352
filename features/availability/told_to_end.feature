@availability
Feature: A design that is told to stop stops in time
  It finishes the work that it has begun, commits it, and stops; being told again does no harm.
  Documented in: beyond the articles. Every release, and every cluster that moves its load, tells a design to stop.
  Broken by: a close that waits for an empty input, or a second close that fails.
  Costs: one commit.

  @G51.in-the-middle-of-its-input
  Scenario Outline: a design stops while records arrive, and goes on from there
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving without a pause
    And the application is told to stop, twice if it is reusable
    And the arrivals end
    Then the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | fold  | exactly_once  |
