@footprint
Feature: The table can be asked by key while the design runs
  Every instance is asked all along, for one robot after the other: it says that it is not ready, or what is true.
  Documented in: The Kafka Streams Experience Pt. 1, "What And Why?" and "Coming Soon…".
  Broken by: answers from a state that is still being read, or not yet committed, or kept by one instance alone.
  Costs: who answers for others holds their part of the table too.

  @G16.says-when-it-is-ready @one-mode
  Scenario Outline: a design answers when its table is whole, and says so as long as it is not
    Given <program> in mode <mode> on 4 partitions
    And 4000 signals of 64 robots wait in its inputs
    When it starts and drains its input
    And it is stopped gracefully
    And 1000 signals of 64 robots arrive in its inputs
    And it starts again and drains its input
    Then no answer is wrong, uncommitted or older than what was visible before
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |

  @G16.never-wrong @one-mode
  Scenario Outline: a crash makes the table unavailable, and never wrong
    Given <program> in mode <mode> on 4 partitions
    And 4000 signals of 64 robots wait in its inputs
    When it starts and drains its input
    And it is killed after a commit
    And it starts again
    And 4000 signals of 64 robots arrive in its inputs
    And it drains its input
    Then for every robot it answers with the last row of its table within 2 seconds
    And no answer is wrong, uncommitted or older than what was visible before
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |

  @G16.stays-online
  Scenario Outline: another instance answers for one that died, without a pause
    Given <program> in mode <mode> on 4 partitions, in several instances, committing every 500 ms
    # small waves, one after the other: what arrives meanwhile is what counts
    And 400 signals of 16 robots wait in its inputs
    When it starts and drains its input
    And b joins and a is killed while more of them arrive
    And it drains its input
    Then the others have answered all the time
    And no answer is wrong, uncommitted or older than what was visible before
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | pulse   | at_least_once |

  @G53.committed-only
  Scenario Outline: no answer shows what is not committed
    Given <program> in mode <mode> on 4 partitions, committing every 500 ms
    # small waves, one after the other: rows change all the time
    And 200 signals of 8 robots wait in its inputs
    When it starts and drains its input
    And more of them arrive for 3 seconds
    Then no answer holds what is not committed
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |
