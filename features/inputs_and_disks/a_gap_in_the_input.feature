@inputs_and_disks @beyond
Feature: A design that finds a gap in its input says so
  Retention deletes records that were not read in time. After the gap every sum is wrong, and only the design that finds it knows where it is.
  Documented in: beyond the articles. Kafka's consumer is told that its offset is out of range, and by default goes on elsewhere without a word.
  Broken by: one setting for a first start and for an offset that is gone.
  Costs: an operator has to decide how it goes on.

  @G42.fallen-off-the-log
  Scenario Outline: a design whose committed offsets are no longer in the log says where, and stops or goes on as declared
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And retention deletes half of its unread input
    # it may go on at the first record that is left, as the request to start says, with a notice
    And the application starts unless it refuses
    Then its loud stop or its notices name the gap
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | map   | exactly_once |

    @full
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | fold  | exactly_once  |
