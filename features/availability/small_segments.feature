@availability
Feature: A changelog in small segments is short when it is read back
  Only closed segments are compacted. Small ones close soon, and a restore reads little more than the last row of each key.
  Documented in: TransferWise, "Reducing segment size on change-log topics".
  Broken by: a restore that expects every row to be there, or offsets without gaps.
  Costs: more files, and a cleaner that has more to do.

  @G32.restored-from-what-is-left
  Scenario Outline: state is restored rightly from a table of which the cleaner has left less than half
    Given a <shape> in mode <mode>
    And its configuration is:
      | segments of its table | 1000 ms |
    # small waves: the table grows by few rows at a time
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And the log cleaner leaves less than half of its table
    And the arrivals end
    And records keep arriving
    And the application is killed after a commit
    And the arrivals end
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

  @G32.answers-from-what-is-left
  Scenario Outline: queries are answered rightly from a table of which the cleaner has left less than half
    Given a <shape> in mode <mode>
    And its configuration is:
      | segments of its table | 1000 ms |
    # small waves: the table grows by few rows at a time
    And 400 records over 16 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And the log cleaner leaves less than half of its table
    And the arrivals end
    And records keep arriving
    And the application is killed after a commit
    And the arrivals end
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And it answers every key with the last row of its table within 2 seconds
    And no answer is wrong, uncommitted or older than what was visible before
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | table | exactly_once |
