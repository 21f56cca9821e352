@replay
Feature: The postings of one entry are one collection
  An entry that fans out over many accounts is applied to all of them or to none, even if the design dies in its middle.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "The Details".
  Broken by: a commit between two postings of one entry, or a position per posting.
  Costs: an entry is held until its last posting is folded.

  @G3.whole-collection
  Scenario Outline: a crash in the middle of an entry leaves none of its postings alone
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <moment>
    And the application starts
    And the application drains its input
    Then no entry is applied to some of its accounts only
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          | moment                    |
      | ledger  | at_least_once | between output and commit |

    @full
    Examples:
      | program | mode          | moment                    |
      | ledger  | exactly_once  | with a transaction open   |

  @G3.whole-at-the-cut
  Scenario Outline: a reader sees every entry whole after a crash
    Given <program> in mode <mode>
    # two accounts an entry, all of them new: an entry can be torn, and a transaction stays open long enough to be observed
    And 10000 records over 20000 keys are in its input
    When the application starts
    And the application is killed with a second transaction open
    Then no entry is applied to some of its accounts only
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | ledger  | exactly_once |
