@transactions
Feature: Output, state and input offsets are one transaction
  Whenever a design dies, a reader of committed data sees each entry's effect once, or not yet.
  Documented in: Enabling Exactly-Once in Kafka Streams, "How Kafka Streams Guarantees Exactly-Once Processing".
  Broken by: offsets committed apart from outputs, or state that outlives an aborted transaction.
  Costs: one transaction a commit interval.

  @G22.dies-with-a-transaction-open
  Scenario Outline: an entry whose transaction was open at the crash is counted once
    Given a <shape> in mode <mode>
    # 20000 accounts: a transaction has to stay open long enough to be observed
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the application is killed with a transaction open
    Then the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

    @full
    Examples:
      | shape | mode         |
      | map   | exactly_once |

  @G22.dies-after-a-commit
  Scenario Outline: an entry that was committed before the crash is not counted again
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed after a commit
    Then the visible outputs are the fold of the committed input
    When 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | map   | exactly_once |

    @full
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G22.restarts-at-once
  Scenario Outline: an entry is counted once if the design is back before the broker has decided its transaction
    # the broker aborts nothing before the restart: what was prepared for a commit is the design's to commit or to abort
    Given a <shape> in mode <mode>
    And its configuration is:
      | transaction timeout | twice its start |
    And its supervisor restarts it as soon as it is killed
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the application is killed <moment>
    And the application drains its input
    And the application stays idle for 1 second
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         | moment                  |
      | map   | exactly_once | after a commit          |
      | fold  | exactly_once | with a transaction open |

  @G22.at-each-request @wire
  Scenario Outline: an entry is counted once, at whatever request of its transaction the design dies
    # before: the broker never receives the request; after: the broker has applied it, and the response is never read
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <side> its next <request>
    Then the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         | side   | request            |
      | fold  | exactly_once | before | AddPartitionsToTxn |
      | fold  | exactly_once | after  | AddPartitionsToTxn |
      | fold  | exactly_once | before | Produce            |
      | fold  | exactly_once | after  | Produce            |
      | fold  | exactly_once | before | TxnOffsetCommit    |
      | fold  | exactly_once | after  | TxnOffsetCommit    |
      | fold  | exactly_once | before | EndTxn             |
      | fold  | exactly_once | after  | EndTxn             |

  @G22.outcome-unheard @wire
  Scenario Outline: a commit whose response was lost is a commit, and is not made again
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the response to its next EndTxn is lost with its connection
    And the application drains its input
    And the application stays idle for 1 second
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         |
      | map   | exactly_once |
      | fold  | exactly_once |

  @G22.commit-applied-and-refused @wire
  Scenario Outline: a commit that is applied, and answered with NOT_COORDINATOR, counts once
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly while it drains
    And 4000 records over 64 keys are in its input
    When the application starts
    # the commit is in the log of a coordinator that has ceased to be one: its successor completes it
    And the response to its next EndTxn is turned into NOT_COORDINATOR
    And the application drains its input
    And the application stays idle for 1 second
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

    @full
    Examples:
      | shape | mode         |
      | map   | exactly_once |

  @G23.offsets-refused @wire
  Scenario Outline: offsets that are rejected once leave no transaction without them
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly while it drains
    And 4000 records over 64 keys are in its input
    When the application starts
    # a new coordinator reads the committed offsets before it accepts more
    And its next TxnOffsetCommit is rejected with COORDINATOR_LOAD_IN_PROGRESS
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode         |
      | map   | exactly_once |

    @core
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G23.aborted-is-never-visible
  Scenario Outline: an aborted transaction is never visible
    Given a <shape> in mode <mode>
    # two accounts an entry, all of them new: an entry can be torn, and a transaction stays open long enough to be observed
    And 20000 records over 40000 keys are in its input
    When the application starts
    And the application is killed with a transaction open
    Then the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G23.committed-is-whole
  Scenario Outline: a committed transaction is visible whole
    Given <program> in mode <mode>
    And 20000 records over 40000 keys are in its input
    When the application starts
    And the application is killed after a commit
    Then the visible outputs are the fold of the committed input
    And no entry is applied to some of its accounts only
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode         |
      | ledger  | exactly_once |

  @G25.restored-state-is-the-commit @one-mode
  Scenario Outline: state restored without the local disk equals the committed offsets
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <moment>
    Then the visible outputs are the fold of the committed input
    When its local state is wiped
    And 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          | moment                    |
      | fold  | at_least_once | between output and commit |
      | fold  | exactly_once  | after a commit            |

  @G25.restarts-at-once
  Scenario Outline: state that is restored at once without the local disk is right at the end
    Given a <shape> in mode <mode>
    And its configuration is:
      | transaction timeout | twice its start |
    And its supervisor restarts it on an empty disk as soon as it is killed
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <moment>
    And 1000 records over 64 keys arrive
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode         | moment         |
      | fold  | exactly_once | after a commit |

  @G69.orderly-failure @one-program
  Scenario Outline: a design that stops in order leaves no transaction open
    # a transaction lasts long enough to be observed in its middle: of a whole one there is nothing left to reject
    Given a <shape> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the broker rejects the rest of its transaction with MESSAGE_TOO_LARGE
    Then it leaves no transaction open
    And the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | map   | exactly_once |
      | fold  | exactly_once |
