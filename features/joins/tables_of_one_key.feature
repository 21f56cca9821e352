@joins
Feature: Two tables of one key are joined
  A result holds the newest rows of both sides. It is deleted when one of them is, and comes back with them.
  Documented in: Joins on stateful stream processing using Kafka Streams' KTables and GlobalKTables, its first example.
  Broken by: partitions that are paired by number alone, though one topic has more of them than the other.
  Costs: a copy of the topic with the wrong count, or a shuffle.

  @G33.tables-of-one-key @one-mode @timed
  Scenario Outline: every change of either table is joined with the other
    Given <program> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 changes of 400 rows and 400 partners are in its inputs
    When the application starts
    And the application drains its input
    And 1000 changes of 400 rows and 400 partners arrive
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          |
      | clients | at_least_once |
      | clients | exactly_once  |

  @G33.the-articles-clients
  Scenario Outline: a client that holds positions has its name in the result
    Given <program> in mode <mode>
    # the tables of the article, and a client without details
    And these client-positions are in its input:
      | client  | positions |
      | client1 | 1, 3      |
      | client2 | 4         |
      | client3 | 5         |
    And these client-details are in its input:
      | client  | name  | surname | email                        |
      | client1 | Peter | Parker  | peter.parker@dailybugle.com  |
      | client2 | Peter | Pan     | peter.pan@neverland.com      |
    When the application starts
    And the application drains its input
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
    Given <program> in mode <mode>
    And its configuration is:
      | partitions                     | 3 |
      | partitions of the second input | 4 |
    And 4000 changes of 400 rows and 400 partners are in its inputs
    When the application starts unless it refuses
    And the application drains its input
    Then it refuses to start or its outputs match the model
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | clients | at_least_once |
      | clients | exactly_once  |
