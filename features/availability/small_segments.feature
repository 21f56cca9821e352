@availability
Feature: A changelog in small segments is short when it is read back
  Only closed segments are compacted. Small ones close soon, and a restore reads little more than the last row of each key.
  Documented in: TransferWise, "Reducing segment size on change-log topics".
  Broken by: a restore that counts on every row to be there, or on offsets without gaps.
  Costs: more files, and a cleaner that has more to do.

  @G32.restored-from-what-is-left
  Scenario Outline: state is restored rightly from a table of which the cleaner has left less than half
    Given <program> in mode <mode> on 4 partitions, with its table in segments of a second
    # small waves, one after the other: its table grows by few rows at a time
    And 400 entries over 64 accounts wait in its input
    When it starts and drains its input
    And more of them arrive until the cleaner has left less than half of its table
    And it is killed after a commit, while more of them arrive
    And it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | ledger  | at_least_once |

  @G32.answers-from-what-is-left
  Scenario Outline: queries are answered rightly from a table of which the cleaner has left less than half
    Given <program> in mode <mode> on 4 partitions, with its table in segments of a second
    # small waves, one after the other: its table grows by few rows at a time
    And 400 signals of 16 robots wait in its inputs
    When it starts and drains its input
    And more of them arrive until the cleaner has left less than half of its table
    And it is killed after a commit, while more of them arrive
    And it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And for every robot it answers with the last row of its table within 2 seconds
    And no answer is wrong, uncommitted or older than what was visible before
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | pulse   | exactly_once |
