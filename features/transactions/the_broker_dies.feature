@transactions @beyond
Feature: A broker that dies in mid-transaction loses nothing and duplicates nothing
  Everything that it acknowledged survives, open transactions and half-made commits included, whether it restarts or another
  broker takes over as coordinator. The client retries.
  Documented in: Kafka's KIP-98, "Transaction Coordinator", which says what a coordinator reads back from its log, restarted or elected.
  Broken by: a batch that is given up when no response comes for a second, or sent again under another producer id.
  Costs: latency for as long as no broker responds.

  @G58.comes-back @one-program
  Scenario Outline: a broker that is killed in mid-transaction and comes back costs neither a loss nor a duplicate
    # a killed broker is registered again when its old session is over, after 9 s; the transaction is still open then
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly while it drains
    And its configuration is:
      | commit interval     | 1000 ms  |
      | transaction timeout | 30000 ms |
    # 20000 accounts: a transaction has to stay open long enough to be observed
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the broker restarts after a crash with a transaction open
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         |
      | map   | exactly_once |
      | fold  | exactly_once |

  @G58.coordinator-moves @one-program @cluster
  Scenario Outline: a transaction whose coordinator dies goes on with another one, and costs neither a loss nor a duplicate
    # the old coordinator may have been the group's too, and a client may wait for that for ever: then it stops loudly, after 10 s
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly while it drains
    And its configuration is:
      | commit interval     | 1000 ms  |
      | transaction timeout | 30000 ms |
    # 20000 accounts: a transaction has to stay open long enough to be observed
    And 20000 records over 20000 keys are in its input
    When the application starts
    And its transaction coordinator fails over with a transaction open
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | map   | exactly_once |
      | fold  | exactly_once |
