@replay
Feature: State lives in a store, and the store is written seldom and before the commit
  A key is written at most once an interval, with its latest state. An offset is committed once everything below it is in the store.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "Persistence And Load Handling".
  Broken by: a write for every change, a commit that does not wait for the store or goes on without it, a state that is never read back.
  Costs: an interval of replay after a crash, and a store that is as old as the interval.

  @G4.once-an-interval
  Scenario Outline: an account is written once an interval at most
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    # small waves: accounts change all the time
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And 3 seconds pass
    And the arrivals end
    Then no key is written to its store more often than once an interval
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | sqlite |
      | fold  | at_least_once | redis  |

  @G4.stored-in-time @timed
  Scenario Outline: the last state of every account is in the store when the interval is over
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    And 4000 records over 64 keys are in its input
    When the application starts
    And 4000 records over 64 keys arrive
    Then its store is current within the persistence interval plus 2 seconds
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | sqlite |

    @full
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | redis  |

  @G4.starts-from-the-store @timed
  Scenario Outline: a start goes on with the latest state that was stored
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And its store is current within the persistence interval plus 2 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | sqlite |

    @full
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | redis  |

  @G5.locked-store
  Scenario Outline: nothing is committed while the store accepts no write
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    # small waves: there is always something to store
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And its store is locked for 2 seconds
    And the arrivals end
    Then its store holds everything that is committed
    When the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | store     |
      | fold  | at_least_once | sqlite    |

    @full
    Examples:
      | shape | mode          | store     |
      | fold  | at_least_once | redis     |
      | fold  | at_least_once | cassandra |

  @G5.slow-store @timed
  Scenario Outline: a store that takes a second for a write loses nothing
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    # small waves: there is always something to store
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And its store is slow for 3 seconds
    And the arrivals end
    Then its store holds everything that is committed
    When the application drains its input
    Then the outputs match the model in order and count under <mode>
    And its store is current within the persistence interval plus 2 seconds
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | sqlite |
      | fold  | at_least_once | redis  |

  @G5.full-store
  Scenario Outline: a design whose store has no more room stops loudly or waits, and loses nothing once there is room again
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    And its supervisor restarts it once if it stops loudly while it drains
    # small waves: there is always something to store
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And its store is full for 2 seconds
    And the arrivals end
    Then its store holds everything that is committed
    When the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | sqlite |

    @full
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | redis  |

  @G5.store-comes-back @timed
  Scenario Outline: a store that is down for five seconds loses nothing
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    # small waves: there is always something to store
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And its store is down for 5 seconds
    And 2 seconds pass
    And the arrivals end
    Then its store holds everything that is committed
    And its memory grows by at most 32 MiB during the outage
    When the application drains its input
    Then the outputs match the model in order and count under <mode>
    And its store is current within the persistence interval plus 2 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | store     |
      | fold  | at_least_once | redis     |

    @full
    Examples:
      | shape | mode          | store     |
      | fold  | at_least_once | cassandra |

  @G5.crash-before-the-commit
  Scenario Outline: an entry that is stored and not yet committed is replayed, and counted once
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 200 ms  |
    # small waves: there is always something to store
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And the application is killed between store and commit
    And the arrivals end
    Then its store holds everything that is committed
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | sqlite |

    @full
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | redis  |

  @G10.the-same-promises @timed
  Scenario Outline: the promises for stored state do not depend on the store
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    # small waves: accounts change all the time
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And 3 seconds pass
    And the arrivals end
    And records keep arriving
    And the application is killed between store and commit
    And the arrivals end
    Then no key is written to its store more often than once an interval
    And its store holds everything that is committed
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    When 4000 records over 64 keys arrive
    Then its store is current within the persistence interval plus 2 seconds
    And no key is written to its store more often than once an interval
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          | store     |
      | fold  | at_least_once | redis     |

    @full
    Examples:
      | shape | mode          | store     |
      | fold  | at_least_once | cassandra |

  @G6.crash-between-the-stages @timed
  Scenario Outline: an entry that the first stage has stored and the last one has not is not lost
    Given <program> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 200 ms  |
    # small waves: there is always something to store
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And the application is killed between its stages
    And the arrivals end
    Then its store holds everything that is committed
    When the application starts
    And 400 records over 64 keys arrive
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And its store is current within the persistence interval plus 2 seconds
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          | store  |
      | branches | at_least_once | redis  |

    @full
    Examples:
      | program  | mode          | store  |
      | branches | at_least_once | sqlite |
