@inputs_and_disks @beyond
Feature: A topic that was deleted and created again is a new topic
  Its offsets begin at 0 again, so positions in the old topic say nothing of the records that lie there now.
  Documented in: beyond the articles. Kafka gives every topic an id for that (KIP-516), and deletes committed offsets with their topic.
  Broken by: positions that are kept by the topic's name alone.
  Costs: a request for the topic's id at every start.

  @G43.made-anew
  Scenario Outline: entries of a topic that was created again are counted, though entries of a topic of that name were counted before
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And its input topic is recreated
    # fewer than before: the old positions do not exist; more than before: they do, and records lie below them
    And <records> records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | records |
      | map   | exactly_once  | 1000    |
      | fold  | at_least_once | 1000    |

    @full
    Examples:
      | shape | mode          | records |
      | map   | at_least_once | 6000    |
      | fold  | exactly_once  | 6000    |
