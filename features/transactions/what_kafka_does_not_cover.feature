@transactions
Feature: A side effect outside of Kafka is not exactly once
  No transaction takes back a report to another system: it comes again, or is of an output that was never committed.
  Documented in: beyond the articles, where exactly-once ends with Kafka. A design that calls a service for each output has to reckon with it.
  Broken by: a report after the commit, which a crash loses, and which so promises even less.
  Costs: a side effect that may come twice has to be idempotent.

  @G64.more-than-once
  Scenario Outline: after two crashes every side effect happened at least once, and some more than once
    Given a <shape> in mode <mode>
    And it has a side effect outside of Kafka for each output
    And 4000 records over 4000 keys are in its input
    When the application starts
    And the application is killed after a commit
    And the application starts
    And 4000 records over 4000 keys arrive
    And the application is killed with a transaction open
    And the application starts
    And the application drains its input
    And the application stays idle for 1 second
    Then the outputs match the model in order and count under <mode>
    And the side effects cover all visible outputs, with some left over
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | fold  | exactly_once |
