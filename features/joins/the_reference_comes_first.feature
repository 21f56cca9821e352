@joins
Feature: A broadcast join has all of its reference before the first record
  A record is joined with the whole reference as it was at the start, in the place where it was read.
  Documented in: Joins on stateful stream processing using Kafka Streams' KTables and GlobalKTables, "Option 1".
  Broken by: records that are joined while the reference is still being read, or a reader that waits for an offset that is a marker.
  Costs: a copy of the reference in every instance, and the time to read it at every start.

  @G34.reference-first @one-mode
  Scenario Outline: no record is joined before the whole reference is read
    Given <program> in mode <mode>
    # both topics end in aborted records and their markers
    And 4000 changes of 600 rows and 400 partners are in its inputs
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | tickers | at_least_once |
      | tickers | exactly_once  |

  @G34.again-after-a-crash @one-mode
  Scenario Outline: after a crash the whole reference is read again
    Given <program> in mode <mode>
    And 4000 changes of 600 rows and 400 partners are in its inputs
    When the application starts
    And the application is killed <moment>
    Then the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          | moment                    |
      | tickers | at_least_once | between output and commit |
      | tickers | exactly_once  | after a commit            |

  @G34.nothing-is-shuffled
  Scenario Outline: a broadcast join keeps no topic of its own
    Given <program> in mode <mode>
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    Then it keeps no internal topic
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode         |
      | tickers | exactly_once |
