@footprint @queries
Feature: The table can be asked by key while the design runs
  Every instance is asked all the time, for one robot after the other: it answers that it is not ready, or the truth.
  Documented in: The Kafka Streams Experience Pt. 1, "What And Why?" and "Coming Soon…".
  Broken by: answers from a state that is still being read, or not yet committed, or kept by one instance alone.
  Costs: an instance that answers for others holds their part of the table too.

  @G16.says-when-it-is-ready @one-mode
  Scenario Outline: a design answers when its table is whole, and says that it is not ready until then
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then no answer is wrong, uncommitted or older than what was visible before
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          |
      | table | at_least_once |
      | table | exactly_once  |

  @G16.never-wrong @one-mode
  Scenario Outline: a crash makes the table unavailable, and never wrong
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is killed after a commit
    And the application starts
    And 4000 records over 64 keys arrive
    And the application drains its input
    Then it answers every key with the last row of its table within 2 seconds
    And no answer is wrong, uncommitted or older than what was visible before
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | table | at_least_once |
      | table | exactly_once  |

  @G16.stays-online
  Scenario Outline: another instance answers for one that died, without a pause
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: the records that arrive meanwhile count
    And 400 records over 16 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And instance b joins
    And instance a is killed
    And the arrivals end
    And the application drains its input
    Then the other instances answer all the time
    And no answer is wrong, uncommitted or older than what was visible before
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | table | at_least_once |

  @G53.committed-only
  Scenario Outline: no answer shows uncommitted data
    Given a <shape> in mode <mode>
    And its configuration is:
      | commit interval | 500 ms |
    # small waves: rows change all the time
    And 200 records over 8 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And 3 seconds pass
    And the arrivals end
    Then no answer holds uncommitted data
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | table | at_least_once |
      | table | exactly_once  |
