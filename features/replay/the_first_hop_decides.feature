@replay
Feature: The first hop decides what is a duplicate
  A stateless relay upstream may repeat; every record carries the chain of positions it was read from, and the first decides.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "And Then, Oops".
  Broken by: tracking the position in the topic that is read, which is new for every repeat.
  Costs: one hop a relay in every record.

  @G7.repeats-upstream
  Scenario Outline: an entry that a relay upstream repeats is counted once
    Given <program> in mode <mode>
    And 4000 republished records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |

  @G7.relay-dies-upstream
  Scenario Outline: entries that a relay repeats after its crash are counted once
    Given <program> in mode <mode>
    And a relay in mode at_least_once feeds it
    And 4000 records over 64 keys are in the relay's input
    When the relay starts
    And the relay is killed between output and commit
    And the relay starts
    And the relay drains its input
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |
      | ledger  | at_least_once |

  @G8.first-hop-moves
  Scenario Outline: entries whose first hop moves to another topic or partition are all counted
    Given <program> in mode <mode>
    And 4000 rehomed records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
