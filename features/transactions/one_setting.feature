@transactions
Feature: One setting chooses the guarantee, and changes nothing else
  The guarantee is at_least_once by default and exactly_once by one setting, with no change of code, output or topic.
  Documented in: Enabling Exactly-Once in Kafka Streams, "Exactly-Once as a Single Configuration Knob in Kafka Streams".
  Broken by: a second code path, a second topic, or a default that promises more than it keeps.
  Costs: nothing where the setting is left alone.

  @G26.default-is-at-least-once @timed
  Scenario Outline: a design with no mode set keeps at_least_once
    Given a <shape> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 records over 64 keys are in its input
    When the application starts with no mode set
    And the application is killed between output and commit
    And the application starts with no mode set
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |

  @G63.nothing-else @one-program
  Scenario Outline: the setting changes what it promises and no row
    Given <program> in mode <mode>
    And a second application runs the same program in mode at_least_once
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the second application starts
    And the second application drains its input
    Then both modes leave the same last rows
    And every output carries the id, timestamp, headers and positions of its input
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | relay   | exactly_once |
      | ledger  | exactly_once |
