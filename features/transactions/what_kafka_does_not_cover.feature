@transactions
Feature: What is done outside of Kafka is not exactly once
  No transaction takes back what was told to somebody outside: it comes again, or is told of what never came to be.
  Documented in: beyond the articles, where exactly-once ends with Kafka. Whoever calls a service for each output has to know it.
  Broken by: telling it after the commit, which loses it in a crash, and so promises even less.
  Costs: an effect outside that may come twice has to be idempotent.

  @G64.more-than-once
  Scenario Outline: after two crashes nothing is missing outside, and something is there too often
    Given <program> in mode <mode>
    And it has a side effect outside of Kafka for each output
    And 4000 records over 4000 keys are in its input
    When the application starts
    And the application is killed after a commit
    And the application starts
    And 4000 records over 4000 keys arrive
    And the application is killed with a transaction open
    And the application starts
    And the application stays idle for 1 second
    Then the outputs match the model under <mode>
    And every side effect happened at least once and some more than once
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | ledger  | exactly_once |
