@replay
Feature: State lives in a store, and the store is written seldom and before the commit
  A key is written once an interval at most, with its latest state, and an offset is committed when all that it counts in is there.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "Persistence And Load Handling".
  Broken by: a write for every change, a commit that does not wait for the store or goes on without it, a state that is never read back.
  Costs: an interval of replay after a crash, and a store that is as old as the interval.

  @G4.once-an-interval
  Scenario Outline: an account is written once an interval at most
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 500 ms
    # small waves, one after the other: accounts change all the time
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 3 seconds
    Then no account is written more often than once an interval
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | sqlite |

    @full
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | redis  |

  @G4.stored-in-time
  Scenario Outline: the last state of every account is in the store when the interval is over
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 500 ms
    And 4000 entries over 64 accounts wait in its input
    When it starts
    And 4000 entries over 64 accounts arrive in its input
    Then while the input rests, its store holds every last state within the interval and 2 seconds
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | sqlite |

    @full
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | redis  |

  @G4.starts-from-the-store
  Scenario Outline: a start goes on with the latest state that was stored
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 500 ms
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    And it is stopped gracefully
    And 1000 entries over 64 accounts arrive in its input
    And it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And while the input rests, its store holds every last state within the interval and 2 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | sqlite |

    @full
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | redis  |

  @G5.locked-store
  Scenario Outline: nothing is committed while the store takes nothing
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 500 ms
    # small waves, one after the other: there is always something to store
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 2 seconds, and its store is locked meanwhile
    Then its store holds all that is committed
    When it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | store     |
      | ledger  | at_least_once | sqlite    |

    @full
    Examples:
      | program | mode          | store     |
      | ledger  | at_least_once | redis     |
      | ledger  | at_least_once | cassandra |

  @G5.slow-store
  Scenario Outline: a store that takes a second for a write takes nothing with it
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 500 ms
    # small waves, one after the other: there is always something to store
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 3 seconds, and its store is slow meanwhile
    Then its store holds all that is committed
    When it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And while the input rests, its store holds every last state within the interval and 2 seconds
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | sqlite |
      | ledger  | at_least_once | redis  |

  @G5.store-comes-back
  Scenario Outline: a store that is gone for five seconds takes nothing with it
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 500 ms
    # small waves, one after the other: there is always something to store
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 7 seconds, and its store is down for 5 of them
    Then its store holds all that is committed
    And while its store was away, it took 32 MiB of memory at most
    When it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And while the input rests, its store holds every last state within the interval and 2 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | store     |
      | ledger  | at_least_once | redis     |

    @full
    Examples:
      | program | mode          | store     |
      | ledger  | at_least_once | cassandra |

  @G5.crash-before-the-commit
  Scenario Outline: an entry that is stored and not yet committed is replayed, and counted once
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 200 ms
    # small waves, one after the other: there is always something to store
    And 400 entries over 64 accounts wait in its input
    When it starts
    And it is killed between store and commit, while more of them arrive
    Then its store holds all that is committed
    When it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | sqlite |

    @full
    Examples:
      | program | mode          | store  |
      | ledger  | at_least_once | redis  |

  @G10.the-same-promises
  Scenario Outline: what is promised of stored state does not depend on the store
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 500 ms
    # small waves, one after the other: accounts change all the time
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 3 seconds
    And it is killed between store and commit, while more of them arrive
    Then no account is written more often than once an interval
    And its store holds all that is committed
    When it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    When 4000 entries over 64 accounts arrive in its input
    Then while the input rests, its store holds every last state within the interval and 2 seconds
    And no account is written more often than once an interval
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          | store     |
      | ledger  | at_least_once | cassandra |

    @full
    Examples:
      | program | mode          | store     |
      | ledger  | at_least_once | redis     |

  @G6.crash-between-the-stages
  Scenario Outline: what the first stage has stored and the last one has not is no loss
    Given <program> in mode <mode> on 4 partitions, keeping its state in <store> every 200 ms
    # small waves, one after the other: there is always something to store
    And 400 entries over 64 accounts wait in its input
    When it starts
    And it is killed between its stages, while more of them arrive
    Then its store holds all that is committed
    When it starts again
    And 400 entries over 64 accounts arrive in its input
    And it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And while the input rests, its store holds every last state within the interval and 2 seconds
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          | store  |
      | branches | at_least_once | redis  |

    @full
    Examples:
      | program  | mode          | store  |
      | branches | at_least_once | sqlite |
