@transactions
Feature: Retries leave the outputs of each key in order
  A batch that is rejected and sent again stays before the batches that were sent after it.
  Documented in: beyond the articles. Kafka's idempotent producer promises it, with up to five requests in flight.
  Broken by: several requests in flight without idempotence.
  Costs: the batches that were sent after a rejected one are sent again, too.

  @G45.refused-once @wire
  Scenario Outline: a batch that is rejected once and sent again does not come after its followers
    # several batches for one partition are in flight at the same time
    Given a <shape> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 records over 64 keys are in its input
    When the application starts
    # the response of a leader that lacks its replicas for a moment, given when more batches are in flight
    And its next Produce is rejected with NOT_ENOUGH_REPLICAS
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And no output is duplicated
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | fold  | exactly_once  |

    @full
    Examples:
      | shape | mode          |
      | map   | exactly_once  |
      | fold  | at_least_once |
