@replay
Feature: State is loaded before the first record is played
  A start loads the state of every stage, and plays only then; the first output after it continues where the last one ended.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "Persistence And Load Handling".
  Broken by: playing while the state is still loading.
  Costs: the time to load, before the first record.

  @G9.state-before-the-first-record
  Scenario Outline: the first output after a restart continues the state before it
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
