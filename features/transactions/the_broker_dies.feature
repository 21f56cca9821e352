@transactions @beyond
Feature: A broker that dies in mid-transaction takes nothing with it, and nothing is counted twice
  What it has acknowledged is still known, open transactions and half-made commits among it, when it is back or when another
  broker has taken its part over; the client asks once more.
  Documented in: Kafka's KIP-98, "Transaction Coordinator", which says what a coordinator reads back from its log, restarted or elected.
  Broken by: giving a batch up because nobody answers for a second, or sending it again under another producer id.
  Costs: what arrives meanwhile is late by as long as nobody did what the broker did.

  @G58.comes-back @one-program
  Scenario Outline: a broker that is killed in mid-transaction and comes back costs neither a loss nor a duplicate
    # a killed broker is registered anew when its old session is over, after 9 s; the open transaction is still there then
    Given <program> in mode <mode> on 4 partitions, committing every 1000 ms, with a transaction timeout of 30000 ms
    # 20000 accounts: one transaction has to stay open long enough to be met
    And 20000 entries over 20000 accounts wait in its input
    When it starts
    And the broker is killed with a transaction open, and comes back
    And it drains its input, started again if it stops loudly
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode         |
      | relay   | exactly_once |
      | ledger  | exactly_once |

  @G58.coordinator-moves @one-program
  Scenario Outline: a transaction whose coordinator dies goes on with another one, and costs neither a loss nor a duplicate
    # the old coordinator may have been the group's too, and a client may wait for that for good: then it stops loudly, after 10 s
    Given <program> in mode <mode> on 4 partitions, on a cluster of three brokers, committing every 1000 ms, with a transaction timeout of 30000 ms
    # 20000 accounts: one transaction has to stay open long enough to be met
    And 20000 entries over 20000 accounts wait in its input
    When it starts
    And the broker that coordinates its transactions is killed with one open, and comes back when another coordinates them
    And it drains its input, started again if it stops loudly
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | relay   | exactly_once |
      | ledger  | exactly_once |
