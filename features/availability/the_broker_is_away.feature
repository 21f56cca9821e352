@availability
Feature: A broker that is away, and a partition in which nothing happens, cost no memory and hold nothing up
  Who cannot reach the broker waits, and takes no more memory for it; who hears nothing from one partition goes on with the others.
  Documented in: beyond the articles. The clients' buffers are bounded (buffer.memory, queued.max.messages.kbytes), and so is what is built on them.
  Broken by: a new client for every try, or rows that wait until every partition has spoken.
  Costs: what arrives meanwhile is late by as long.

  @G49.the-broker-is-away @wire
  Scenario Outline: five seconds without a broker are made up for, and nothing was heaped up meanwhile
    # the timeout is longer than the outage: the open transaction is still there when it is over
    Given <program> in mode <mode> on 4 partitions, with a transaction timeout of 15000 ms, with a proxy in between
    # small waves, one after the other: there is always something to do
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 7 seconds, and the broker is out of its reach for 5 of them
    Then while its broker was away, it took 32 MiB of memory at most
    When it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |

    @full
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |

  @G49.one-partition-is-idle @one-mode
  Scenario Outline: what arrives in the other partitions does not wait for one in which nothing happens
    Given <program> in mode <mode> on 4 partitions, committing every 1000 ms
    And 4000 entries over 64 accounts wait in its input, and one partition has none
    When it starts and drains its input
    Then while the input rests, its outcome is visible within the commit interval and 2 seconds
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | ledger  | exactly_once  |
