@joins
Feature: Deletions and older results never overtake
  A result never follows one of a newer row, and nothing but a newer insertion follows a deletion.
  Documented in: Joins on stateful stream processing using Kafka Streams' KTables and GlobalKTables, "Option 2".
  Broken by: deletions that take a shorter way, results of two partitions without a filter, or a filter that forgets too soon.
  Costs: the newest version of every row, and of every row that went for as long as older results can arrive.

  @G36.deletions-after-insertions @one-mode
  Scenario Outline: a deletion never reaches the result before its row
    Given <program> in mode <mode> on 4 partitions
    And 4000 changes of 100 rows with 40 partners wait in its inputs
    When some rows have gone right after they came
    And it starts and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode          |
      | holdings | at_least_once |
      | holdings | exactly_once  |

  @G37.newer-keys-win
  Scenario Outline: when a row moves, no older result replaces the newer one
    Given <program> in mode <mode> on 4 partitions
    And 4000 changes of 100 rows with 40 partners wait in its inputs
    When some rows have moved across the partitions of their partners
    And it starts
    And it is killed <moment>
    Then the visible outputs are the fold of the committed input
    When 1000 changes of 100 rows with 40 partners arrive in its inputs
    And it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          | moment                    |
      | holdings | at_least_once | between output and commit |

    @core
    Examples:
      | program  | mode          | moment                    |
      | holdings | exactly_once  | after a commit            |

  @G36.gone-for-good @one-mode
  Scenario Outline: a row that went does not come back with its partner
    Given <program> in mode <mode> on 4 partitions, committing every 1000 ms
    And 4000 changes of 600 rows with 40 partners wait in its inputs
    When it starts and drains its input
    And every row goes
    And it drains its input
    And every partner changes
    Then while the input rests, its outcome is visible within the commit interval and 2 seconds
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @full
    Examples:
      | program  | mode          |
      | holdings | at_least_once |
      | holdings | exactly_once  |

  @G36.gone-during-an-outage @one-mode
  Scenario Outline: a row whose result was visible at the crash, and that went meanwhile, leaves a tombstone
    Given <program> in mode <mode> on 4 partitions
    # 400 changes: a restart reads a row's arrival and its departure together
    And 400 changes of 100 rows with 40 partners wait in its inputs
    When it starts
    And it is killed <moment>
    And every row goes
    And it starts again and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          | moment                    |
      | holdings | at_least_once | between output and commit |
      | holdings | exactly_once  | after a commit            |

  @G38.remembered
  Scenario Outline: a deletion is remembered while older results are on their way
    Given <program> in mode <mode> on 4 partitions
    And 4000 changes of 600 rows with 40 partners wait in its inputs
    When it starts and drains its input
    And 2000 more rows come
    And it drains its input
    And they go again, while every partner changes
    And it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode          |
      | holdings | at_least_once |

  @G38.forgotten
  Scenario Outline: a deletion is forgotten when no older result can come any more
    Given <program> in mode <mode> on 4 partitions, remembering deletions for 1000 ms
    And 4000 changes of 600 rows with 40 partners wait in its inputs
    When it starts and drains its input
    And it says how much it holds
    And 20000 more rows come
    And it drains its input
    And it says how much it holds
    And they go again, while every partner changes
    And it drains its input
    Then 2 seconds after deletions may be forgotten, it holds no more than twice as much
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode         |
      | holdings | exactly_once |

  @G38.forgotten-by-the-hundred-thousand @soak
  Scenario Outline: of two hundred thousand deletions none is remembered for ever
    Given <program> in mode <mode> on 4 partitions, remembering deletions for 5000 ms
    # 400 changes: the crowd is what counts, and every change of a partner multiplies what it may show
    And 400 changes of 600 rows with 40 partners wait in its inputs
    When it starts and drains its input
    And it says how much it holds
    And 200000 more rows come
    And it drains its input
    And it says how much it holds
    And they go again, while every partner changes
    And it drains its input
    Then 2 seconds after deletions may be forgotten, it holds no more than twice as much
    And nothing else changes on the broker

    @full
    Examples:
      | program  | mode         |
      | holdings | exactly_once |
