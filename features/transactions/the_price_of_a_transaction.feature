@transactions
Feature: A transaction costs the same whatever its size, and the commit interval says how many there are
  A longer interval costs latency, since a reader of committed data waits for the commit, and buys throughput, since there are fewer commits.
  Documented in: Enabling Exactly-Once in Kafka Streams, "Streams Performance Implications".
  Broken by: a transaction for each read, or for each record, whatever the interval is.
  Costs: up to an interval of latency.

  @G27.once-an-interval
  Scenario Outline: no transaction ends before its interval is over, whatever the traffic
    Given a <shape> in mode <mode>
    And its configuration is:
      | commit interval | 2000 ms |
    # small waves: ten in an interval
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And 4 seconds pass
    And the arrivals end
    And the application drains its input
    Then no more transactions end than commit intervals begin
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode         |
      | fold  | exactly_once |
