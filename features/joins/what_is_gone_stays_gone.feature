@joins
Feature: Deletions and older results never overtake
  A result never follows one of a newer row, and nothing but a newer insertion follows a deletion.
  Documented in: Joins on stateful stream processing using Kafka Streams' KTables and GlobalKTables, "Option 2".
  Broken by: deletions that take a shorter way, results of two partitions without a filter, or a filter that forgets too soon.
  Costs: the newest version of every row, and of every deleted row for as long as older results can arrive.

  @G36.deletions-after-insertions @one-mode
  Scenario Outline: a deletion never reaches the result before its row
    Given <program> in mode <mode>
    And 4000 changes of 100 rows and 40 partners are in its inputs
    When the changes hold deletions right after insertions
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode          |
      | holdings | at_least_once |
      | holdings | exactly_once  |

  @G37.newer-keys-win
  Scenario Outline: when a row moves, no older result replaces the newer one
    Given <program> in mode <mode>
    And 4000 changes of 100 rows and 40 partners are in its inputs
    When the changes hold moves across the partitions of partners
    And the application starts
    And the application is killed <moment>
    Then the visible outputs are the fold of the committed input
    When 1000 changes of 100 rows and 40 partners arrive
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          | moment                    |
      | holdings | at_least_once | between output and commit |

    @core
    Examples:
      | program  | mode          | moment                    |
      | holdings | exactly_once  | after a commit            |

  @G36.gone-for-good @one-mode @timed
  Scenario Outline: a deleted row does not come back with its partner
    Given <program> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And every row is deleted
    And the application drains its input
    And every partner changes
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program  | mode          |
      | holdings | at_least_once |
      | holdings | exactly_once  |

  @G36.gone-during-an-outage @one-mode
  Scenario Outline: a row whose result was visible at the crash, and that was deleted meanwhile, leaves a tombstone
    Given <program> in mode <mode>
    # 400 changes: a restart reads the insertion and the deletion of a row together
    And 400 changes of 100 rows and 40 partners are in its inputs
    When the application starts
    And the application is killed <moment>
    And every row is deleted
    And the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          | moment                    |
      | holdings | at_least_once | between output and commit |
      | holdings | exactly_once  | after a commit            |

  @G38.remembered
  Scenario Outline: a deletion is remembered while older results are on their way
    Given <program> in mode <mode>
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And 2000 more rows arrive
    And the application drains its input
    And those rows are deleted while every partner changes
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          |
      | holdings | at_least_once |

  @G38.forgotten
  Scenario Outline: a deletion is forgotten when no older result can come any more
    Given <program> in mode <mode>
    And its configuration is:
      | delete retention | 1000 ms |
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And the size of its state is measured
    And 20000 more rows arrive
    And the application drains its input
    And the size of its state is measured
    And those rows are deleted while every partner changes
    And the application drains its input
    And the delete retention passes
    And 400 changes of 600 rows and 40 partners arrive
    And the application drains its input
    Then its state is at most twice its first size within 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode         |
      | holdings | exactly_once |

  @G38.forgotten-by-the-hundred-thousand @soak
  Scenario Outline: of two hundred thousand deletions none is remembered for ever
    Given <program> in mode <mode>
    And its configuration is:
      | delete retention | 5000 ms |
    # 400 changes: the crowd counts, and every change of a partner multiplies the results that may be shown
    And 400 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And the size of its state is measured
    And 200000 more rows arrive
    And the application drains its input
    And the size of its state is measured
    And those rows are deleted while every partner changes
    And the application drains its input
    And the delete retention passes
    And 400 changes of 600 rows and 40 partners arrive
    And the application drains its input
    Then its state is at most twice its first size within 2 seconds
    And nothing else changes on the broker

    @full
    Examples:
      | program  | mode         |
      | holdings | exactly_once |
