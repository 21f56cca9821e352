@transactions
Feature: A transaction costs the same whatever its size, and the commit interval says how many there are
  A longer interval costs latency, since a reader of committed data waits for the end, and buys throughput, since fewer ends are paid for.
  Documented in: Enabling Exactly-Once in Kafka Streams, "Streams Performance Implications".
  Broken by: a transaction for each read, or for each record, whatever the interval is.
  Costs: up to an interval of latency.

  @G27.once-an-interval
  Scenario Outline: no transaction ends before its interval is over, whatever arrives
    Given <program> in mode <mode> on 4 partitions, committing every 2000 ms
    # small waves, one after the other, ten in an interval
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 4 seconds
    And it drains its input
    Then no more transactions end than intervals begin
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode         |
      | ledger  | exactly_once |
