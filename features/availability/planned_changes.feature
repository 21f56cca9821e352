@availability
Feature: A planned change loses nothing
  A design that is stopped, configured anew and started goes on where it stood, whatever of its settings is another one now.
  Documented in: beyond the articles. Commit interval, instances and guarantee are settings of Kafka Streams, and operators change them.
  Broken by: names of groups, of ids or of state that hang on a setting.
  Costs: names that are fixed.

  @G89.another-commit-interval
  Scenario Outline: a design goes on with another commit interval
    Given a <shape> in mode <mode>
    And its configuration is:
      | commit interval | 200 ms |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts with a commit interval of 2 seconds
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
      | map   | at_least_once |
      | map   | exactly_once  |
      | fold  | exactly_once  |

  @G89.another-guarantee
  Scenario Outline: a design goes on with the other guarantee, and with its own again
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts in mode at_least_once
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts in mode exactly_once
    And the application drains its input
    And the application is stopped gracefully
    Then it leaves no transaction open
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | exactly_once  |

    @full
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

  @G89.more-instances
  Scenario Outline: a design goes on with one instance more than it had
    Given a <shape> in mode <mode>
    And it runs in several instances
    # small waves: the records that arrive meanwhile count
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 400 records over 64 keys arrive
    And the application starts
    And records keep arriving
    And instance b joins
    And the arrivals end
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | fold  | exactly_once  |
