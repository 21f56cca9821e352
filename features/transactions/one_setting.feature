@transactions
Feature: One setting chooses the guarantee, and changes nothing else
  The guarantee is at_least_once by default and exactly_once by one setting, with no change of code, output or topic.
  Documented in: Enabling Exactly-Once in Kafka Streams, "Exactly-Once as a Single Configuration Knob in Kafka Streams".
  Broken by: a second code path, a second topic, or a default that promises more than it keeps.
  Costs: nothing to those who leave it alone.

  @G26.default-is-at-least-once @one-program
  Scenario Outline: a design with no mode set keeps at_least_once
    Given <program> in mode <mode> on 4 partitions, committing every 1000 ms
    And 4000 entries over 64 accounts wait in its input
    When it starts with no mode set
    And it is killed between output and commit
    And it starts again with no mode set
    Then while the input rests, its outcome is visible within the commit interval and 2 seconds
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | at_least_once |

  @G63.nothing-else @one-program
  Scenario Outline: the setting changes what it promises and no row
    Given <program> in mode <mode> on 4 partitions
    And the same in mode at_least_once beside it
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    Then both modes leave the same last rows
    And every output carries its input's id, timestamp and headers, and the chain of positions
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | relay   | exactly_once |
      | ledger  | exactly_once |
