@availability @two-releases
Feature: The next release goes on from what the last one left
  Its state, its positions and its ids are those of the release before it, stopped first or beside it; and that one takes them up again.
  Documented in: beyond the articles. Every application is released again, and its state outlives each release.
  Broken by: state that begins anew in silence, a store or a changelog with another name, another partitioner.
  Costs: names that are fixed, and a state that two releases can read.

  @G81.stopped-and-started
  Scenario Outline: the later release goes on from what the earlier one left, or refuses to start
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the earlier release starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the later release starts unless it refuses
    And the application drains its input
    Then it refuses to start or its outputs match the model
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | fold  | at_least_once |
      | map   | exactly_once  |
      | table | exactly_once  |

    @full
    Examples:
      | shape | mode          |
      | batch | exactly_once  |

  @G81.state-in-a-store
  Scenario Outline: the later release finds the state that the earlier one has in a store
    Given a <shape> in mode <mode>
    And its configuration is:
      | state store          | <store> |
      | persistence interval | 500 ms  |
    And 4000 records over 64 keys are in its input
    When the earlier release starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the later release starts unless it refuses
    And the application drains its input
    Then it refuses to start or its outputs match the model
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | store  |
      | fold  | at_least_once | sqlite |

  @G81.beside-each-other
  Scenario Outline: the later release joins the earlier one, which leaves, while records arrive
    Given a <shape> in mode <mode>
    And it runs in several instances
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the earlier release starts
    And records keep arriving
    And instance b joins as the later release
    And instance a leaves
    And the arrivals end
    And the application drains its input
    Then no partition has two owners
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | exactly_once  |
      | fold  | exactly_once  |

    @full
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

  @G81.rolled-back
  Scenario Outline: the earlier release goes on from what the later one left, or refuses to start
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the earlier release starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the later release starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the earlier release starts unless it refuses
    And the application drains its input
    Then it refuses to start or its outputs match the model
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | exactly_once  |
      | fold  | exactly_once  |

    @full
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | fold  | at_least_once |
