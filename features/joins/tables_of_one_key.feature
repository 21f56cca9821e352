@joins
Feature: Two tables of one key are joined
  A result holds the newest rows of both sides, goes when one of them goes, and comes again with them.
  Documented in: Joins on stateful stream processing using Kafka Streams' KTables and GlobalKTables, its first example.
  Broken by: partitions that are paired by number alone, though one topic has more of them than the other.
  Costs: a copy of the topic with the wrong count, or a shuffle.

  @G33.tables-of-one-key @one-mode
  Scenario Outline: every change of either table is joined with the other
    Given <program> in mode <mode> on 4 partitions, committing every 1000 ms
    And 4000 changes of 400 rows with 400 partners wait in its inputs
    When it starts and drains its input
    And 1000 changes of 400 rows with 400 partners arrive in its inputs
    Then while the input rests, its outcome is visible within the commit interval and 2 seconds
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          |
      | clients | at_least_once |
      | clients | exactly_once  |

  @G33.the-articles-clients
  Scenario Outline: who holds positions is known by name
    Given <program> in mode <mode> on 4 partitions
    # the tables of the article, and a client without details
    And these client-positions wait in its input:
      | client  | positions |
      | client1 | 1, 3      |
      | client2 | 4         |
      | client3 | 5         |
    And these client-details wait in its input:
      | client  | name  | surname | email                        |
      | client1 | Peter | Parker  | peter.parker@dailybugle.com  |
      | client2 | Peter | Pan     | peter.pan@neverland.com      |
    When it starts and drains its input
    Then the result is:
      | client  | positions | name  | surname | email                       |
      | client1 | 1, 3      | Peter | Parker  | peter.parker@dailybugle.com |
      | client2 | 4         | Peter | Pan     | peter.pan@neverland.com     |
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode         |
      | clients | exactly_once |

  @G33.different-partition-counts @one-mode
  Scenario Outline: tables with different partition counts are refused, or joined right
    Given <program> in mode <mode> on 3 and 4 partitions
    And 4000 changes of 400 rows with 400 partners wait in its inputs
    When it starts and drains its input, unless it refuses to
    Then it has refused, or the outputs are the model's
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | clients | at_least_once |
      | clients | exactly_once  |
