@inputs_and_disks @beyond
Feature: A topic that was deleted and made anew is a new topic
  Its offsets begin at nothing again, so what is known of the old ones says nothing of the records that lie there now.
  Documented in: beyond the articles. Kafka gives every topic an id for that (KIP-516), and forgets what groups have committed of one that is gone.
  Broken by: positions that are kept by the topic's name alone.
  Costs: a question for the topic's id at every start.

  @G43.made-anew
  Scenario Outline: entries of a topic that was made anew are counted, though as many of its name were counted before
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And its input topic is recreated
    # fewer than there were: offsets that do not exist; or more: offsets that do, and records before them
    And <records> records over 64 keys arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | records |
      | relay   | exactly_once  | 1000    |
      | ledger  | at_least_once | 1000    |

    @full
    Examples:
      | program | mode          | records |
      | relay   | at_least_once | 6000    |
      | ledger  | exactly_once  | 6000    |
