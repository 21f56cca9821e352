@availability
Feature: The input may get more partitions while it is read
  A topic grows when it has too few readers. No reader has a position in a new partition, so its records count from the first one.
  Documented in: beyond the articles. Kafka's clients learn of new partitions when they refresh the topic's metadata, by default within five minutes.
  Broken by: new partitions that are read from their end, and state that belongs to a partition instead of a key.
  Costs: a refresh of the metadata every second, and a rebalance.

  @G44.from-their-start
  Scenario Outline: records that lie in a new partition before it is known are counted, or the design refuses to go on
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly, unless it refuses
    And its configuration is:
      | partitions | 4 |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And its input gets twice as many partitions
    And 4000 records over 64 keys arrive
    And the application drains its input
    Then its outputs match the model, up to its commits if it refused to go on
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

  @G44.while-it-is-down
  Scenario Outline: partitions that are added while it is down are read, even if it is back within its session
    Given a <shape> in mode <mode>
    And its configuration is:
      | partitions      | 4       |
      | session timeout | 6000 ms |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And its input gets twice as many partitions
    And 4000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G44.state-stays-with-its-keys
  Scenario Outline: an account whose entries move to a new partition goes on from its balance, on whichever instance
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly, unless it refuses
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And instance b joins
    And the arrivals end
    And the application drains its input
    And its input gets twice as many partitions
    And 4000 records over 64 keys arrive
    And the application drains its input
    Then its outputs match the model, up to its commits if it refused to go on
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         |
      | fold  | exactly_once |
