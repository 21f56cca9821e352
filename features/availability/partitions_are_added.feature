@availability
Feature: The input may get more partitions while somebody reads it
  A topic grows when its readers are too few. What arrives in a new partition was never behind anybody, so it counts from the first record.
  Documented in: beyond the articles. Kafka's clients hear of new partitions when they look at the topic again, by default within five minutes.
  Broken by: new partitions that are read from their end, and state that belongs to a partition instead of a key.
  Costs: a look at the topic every second, and a rebalance.

  @G44.from-their-start
  Scenario Outline: what lies in a new partition before anybody has heard of it is counted
    Given <program> in mode <mode>
    And its configuration is:
      | partitions | 4 |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And its input gets twice as many partitions
    And 4000 records over 64 keys arrive
    And the application drains its input
    Then the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |

    @full
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |

  @G44.state-stays-with-its-keys
  Scenario Outline: an account whose entries come in a new partition goes on from its balance, whoever reads that
    Given <program> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves, one after the other: what arrives meanwhile is what counts
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And instance b joins
    And the arrivals end
    And the application drains its input
    And its input gets twice as many partitions
    And 4000 records over 64 keys arrive
    And the application drains its input
    Then the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | ledger  | exactly_once |
