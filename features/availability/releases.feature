@availability
Feature: A release that goes wrong corrupts nothing
  An upgrade that is rolled back, and a deployment that is started twice, end in the right outputs or in a loud stop.
  Documented in: beyond the articles. Both happen to whoever releases often, and neither asks the stream processor first.
  Broken by: a disk that is believed over the committed offsets, ids that are drawn anew at every start.
  Costs: comparing what is on disk with what is committed, at every start.

  @G54.rolled-back
  Scenario Outline: after a release that was rolled back the old version goes on rightly, or refuses to
    Given <program> in mode <mode> on 4 partitions
    And <first> wait in its <inputs>
    When it starts and drains its input
    And it is stopped gracefully
    And its disks are kept as they are
    And <more> arrive in its <inputs>
    # what the new version does until it is taken back
    And it starts again and drains its input
    And it is stopped gracefully
    And its disks are set back to that
    And <more> arrive in its <inputs>
    And it starts again and drains its input, unless it refuses to
    Then it has refused, or the outputs are the model's
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | first                         | more                          | inputs |
      | ledger  | at_least_once | 4000 entries over 64 accounts | 1000 entries over 64 accounts | input  |
      | pulse   | exactly_once  | 4000 signals of 64 robots     | 1000 signals of 64 robots     | inputs |

    @full
    Examples:
      | program | mode          | first                         | more                          | inputs |
      | ledger  | exactly_once  | 4000 entries over 64 accounts | 1000 entries over 64 accounts | input  |

  @G55.deployed-twice
  Scenario Outline: two deployments under the same ids are noticed, and do no harm
    Given <program> in mode <mode> on 4 partitions
    # small waves, one after the other: both have something to do
    And 400 entries over 64 accounts wait in its input
    When it starts and drains its input
    And a second deployment under the same ids starts while more of them arrive, and both are ended
    Then one of the two has stopped loudly, or refused to start
    And the visible outputs are the fold of the committed input
    When it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | ledger  | exactly_once |

  @G55.noticed
  Scenario Outline: without transactions, two deployments under the same ids are noticed
    # that is all: nothing keeps out what the displaced one has sent already, and it may be the last word on an account
    Given <program> in mode <mode> on 4 partitions
    # small waves, one after the other: both have something to do
    And 400 entries over 64 accounts wait in its input
    When it starts and drains its input
    And a second deployment under the same ids starts while more of them arrive, and both are ended
    Then one of the two has stopped loudly, or refused to start
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
