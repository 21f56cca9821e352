@replay
Feature: A replay changes no sum
  The state of a key carries the position of the last entry folded into it; an entry at or below it changes nothing.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "The Details".
  Broken by: state and position stored apart, or a position that is forgotten on a restart.
  Costs: one position beside every sum.

  @G1.replayed-after-a-crash
  Scenario Outline: an entry replayed after a crash changes no balance
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <moment>
    And 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          | moment                    |
      | fold  | exactly_once  | after a commit            |

    @core
    Examples:
      | shape | mode          | moment                    |
      | fold  | at_least_once | between output and commit |

  @G2.in-the-order-of-the-partition @timed
  Scenario Outline: entries of one key are applied in the order of their partition
    Given a <shape> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And 1000 records over 64 keys arrive
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | map   | at_least_once |

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | map   | exactly_once  |
      | fold  | exactly_once  |
