@inputs_and_disks @beyond
Feature: A topic that was deleted and made anew is a new topic
  Its offsets begin at nothing again, so what is known of the old ones says nothing of the records that lie there now.
  Documented in: beyond the articles. Kafka gives every topic an id for that (KIP-516), and forgets what groups have committed of one that is gone.
  Broken by: positions that are kept by the topic's name alone.
  Costs: a question for the topic's id at every start.

  @G43.made-anew
  Scenario Outline: entries of a topic that was made anew are counted, though as many of its name were counted before
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    And it is stopped gracefully
    And its input is deleted and made anew
    # fewer than there were: offsets that do not exist; or more: offsets that do, and records before them
    And <entries> entries over 64 accounts arrive in its input
    And it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | entries |
      | relay   | exactly_once  | 1000    |
      | ledger  | at_least_once | 1000    |

    @full
    Examples:
      | program | mode          | entries |
      | relay   | at_least_once | 6000    |
      | ledger  | exactly_once  | 6000    |
