@transactions
Feature: No reader waits for a design that is dead for good
  The broker aborts its open transaction when the transaction timeout is over, and readers go on.
  Documented in: beyond the articles. Kafka's transaction coordinator promises it, within the timeout that the producer asked for.
  Broken by: a transaction timeout that is as long as possible, to be rid of timeouts.
  Costs: a producer that is silent for longer than the timeout loses its transaction.

  @G39.dead-for-good @wire @one-program
  Scenario Outline: readers pass the transaction of a design that never comes back
    Given a <shape> in mode <mode>
    And its configuration is:
      | transaction timeout | 3000 ms |
    And it never comes back
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed after its next Produce
    # the transaction timeout, and the broker's sweep
    Then readers wait at most 4500 ms for the transaction that it left
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | map   | exactly_once |
      | fold  | exactly_once |
