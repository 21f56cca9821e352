@transactions
Feature: Retries leave the outputs of each key in order
  A batch that is refused and sent again stays before what was sent after it.
  Documented in: beyond the articles. Kafka's idempotent producer promises it, with up to five requests under way.
  Broken by: several requests under way without idempotence.
  Costs: what was sent behind a refused batch is sent again, too.

  @G45.refused-once @wire
  Scenario Outline: what is refused once and sent again does not come after what followed it
    # nobody waits for what was sent before more is sent to the same partition
    Given <program> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 records over 64 keys are in its input
    When the application starts
    # the answer of a leader that lacks its replicas for a moment, given when more is under way
    And its next Produce is rejected with NOT_ENOUGH_REPLICAS
    And the application drains its input
    Then the outputs match the model under <mode>
    And no output is duplicated
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | exactly_once  |
