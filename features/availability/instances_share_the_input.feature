@availability
Feature: Instances share the partitions, and none of them is needed
  An instance that joins takes over partitions; one that leaves or dies leaves them to the others. Nothing is lost or counted twice.
  Documented in: TransferWise, "Achieving high availability with stateful Kafka Streams applications", "Kafka: Consumer Group Rebalancing".
  Broken by: state that stays with its instance, work on a partition that was revoked, one transactional id for all instances.
  Costs: a pause at every rebalance while state is restored; after a death, the session timeout before it.

  @G28.joins-and-leaves @one-mode
  Scenario Outline: instances share the partitions, and work goes on when one joins or leaves
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And instance b joins
    And instance a leaves
    And the arrivals end
    And the application drains its input
    Then no partition has two owners
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | fold  | exactly_once  |

  @G28.assigned-by-the-broker
  Scenario Outline: instances share the partitions that the broker assigns, each change by itself
    # KIP-848: an instance is told what is new to it and what goes, and keeps the rest
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4        |
      | commit interval | 1000 ms  |
      | group protocol  | consumer |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And instance b joins
    And instance c joins
    And instance c is killed
    And instance a leaves
    And the arrivals end
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
      | fold  | at_least_once |

  @G28.what-waits-moves-on
  Scenario Outline: events that wait for their batch move on with their partition, and go once
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4          |
      | commit interval | 500 ms     |
      | batch size      | 50 records |
      | batch interval  | 4000 ms    |
    # small waves: some events always wait
    And 400 records over 40 keys are in its input
    When the application starts
    And records keep arriving
    # several commits are made while events wait
    And 2 seconds pass
    And instance b joins
    And instance a leaves
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | batch | exactly_once |

    @full
    Examples:
      | shape | mode         |
      | batch | at_least_once |

  @G28.survives-a-death
  Scenario Outline: the others go on with the partitions of an instance that died
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And instance b joins
    And instance b is killed
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

    @full
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

  @G29.behind-an-open-transaction
  Scenario Outline: a transaction that a dead instance left open hides no state from its successor
    # the session ends after 2000 ms: the transaction is still open when another instance takes over
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions          | 4        |
      | transaction timeout | 16000 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And instance b joins
    And instance a is killed with a transaction open
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G52.back-to-back @one-mode
  Scenario Outline: no partition has two owners while instances come and go in quick succession
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And instances change back to back:
      | b | joins     |
      | c | joins     |
      | a | leaves    |
      | d | joins     |
      | b | is killed |
    And the arrivals end
    And the application drains its input
    Then no partition has two owners
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | fold  | exactly_once  |

  @G28.loses-a-worker
  Scenario Outline: the others go on with the work of a worker that died
    Given a <shape> in mode <mode>
    And it runs on 2 workers
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And a worker is killed
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

  @G52.workers-come-and-go
  Scenario Outline: no work is done twice while workers come and go
    Given a <shape> in mode <mode>
    And it runs on 2 workers
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And a worker is killed
    And another worker is killed
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         |
      | fold  | exactly_once |
