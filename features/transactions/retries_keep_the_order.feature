@transactions
Feature: Retries leave the outputs of each key in order
  A batch that is refused and sent again stays before what was sent after it.
  Documented in: beyond the articles. Kafka's idempotent producer promises it, with up to five requests under way.
  Broken by: several requests under way without idempotence.
  Costs: what was sent behind a refused batch is sent again, too.

  @G45.refused-once @wire
  Scenario Outline: what is refused once and sent again does not come after what followed it
    # nobody waits for what was sent before more is sent to the same partition
    Given <program> in mode <mode> on 4 partitions, committing every 1000 ms, with a proxy in between
    And 4000 entries over 64 accounts wait in its input
    When it starts
    # the answer of a leader that lacks its replicas for a moment, given when more is under way
    And its next Produce is refused for want of replicas
    And it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And no output stands there twice
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | exactly_once  |
