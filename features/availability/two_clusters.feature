@availability
Feature: A release switches between two clusters, and no reader notices
  A second cluster, with an id of its own, warms up beside the first. It is told where the first one ended, and goes on from there.
  Documented in: TransferWise, "Aiming for stars: High availability with Kafka Streams".
  Broken by: a cluster that emits while it stands by, or goes on after it has handed over; a position that is off by one.
  Costs: twice the memory and twice the reading while both run.

  @G31.only-the-active
  Scenario Outline: of two clusters only the active one emits
    Given a <shape> in mode <mode>
    And it runs in two clusters
    # small waves: both clusters always have something to do
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And a second cluster stands by
    And records keep arriving
    And the second cluster takes over
    And the arrivals end
    Then only the active cluster writes
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

  @G31.undisturbed @one-mode
  Scenario Outline: a switch between two clusters loses nothing and repeats nothing
    Given a <shape> in mode <mode>
    And it runs in two clusters
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And a second cluster stands by
    And records keep arriving
    And the second cluster takes over
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | fold  | exactly_once  |

  @G31.and-back
  Scenario Outline: a switch back within the session of the first cluster loses nothing and repeats nothing
    Given a <shape> in mode <mode>
    And it runs in two clusters
    And its configuration is:
      | session timeout | 20000 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And a second cluster stands by
    And records keep arriving
    And the second cluster takes over
    And the first cluster stands by
    And the first cluster takes over
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | fold  | exactly_once |

  @G62.silent-first
  Scenario Outline: the old cluster is silent before the new one emits
    Given a <shape> in mode <mode>
    And it runs in two clusters
    # small waves: both clusters always have something to do
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And a second cluster stands by
    And records keep arriving
    And the second cluster takes over
    And the arrivals end
    Then the old cluster is silent before the new one writes
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G62.gap
  Scenario Outline: readers wait no longer than 5 seconds for the new cluster
    Given a <shape> in mode <mode>
    And it runs in two clusters
    # small waves: there is always something to emit
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And a second cluster stands by
    And records keep arriving
    And the second cluster takes over
    And the arrivals end
    Then the new cluster's first output is visible within 5 seconds
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @SLA.through-a-switch
  Scenario Outline: a release by cluster switch keeps the service level
    Given a <shape> in mode <mode>
    And it runs in two clusters
    # waves that make 10,000 states in all, of which one may be late
    And 1000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And a second cluster stands by
    And records keep arriving
    And the second cluster takes over
    And the arrivals end
    And the application drains its input
    Then 99.99 % of all states are visible within 10 seconds
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode         |
      | fold  | exactly_once |
