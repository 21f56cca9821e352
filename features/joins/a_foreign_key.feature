@joins
Feature: Two large tables are joined on a foreign key
  Every row is in the result, with its partner where it has one, and follows every change of either.
  Documented in: Joins on stateful stream processing using Kafka Streams' KTables and GlobalKTables, "Option 2"; changes of the
  partner go beyond it.
  Broken by: partners without a subscription, subscriptions that never end, or rows that are dropped because they have no partner.
  Costs: a shuffle to the partner and back, and a list of subscribers beside every partner.

  @G35.left-outer @one-mode
  Scenario Outline: every row is in the result, with its partner or without
    Given <program> in mode <mode>
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And 1000 changes of 600 rows and 40 partners arrive
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program  | mode          |
      | holdings | at_least_once |
      | holdings | exactly_once  |

  @G35.in-two-instances
  Scenario Outline: every row finds its partner when two instances share the tables
    Given <program> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    And 400 changes of 60 rows and 20 partners are in its inputs
    When the application starts
    And the application drains its input
    And records keep arriving
    And instance b joins
    And the arrivals end
    And the application drains its input
    And 400 changes of 60 rows and 20 partners arrive
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program  | mode         |
      | holdings | exactly_once |

  @G35.the-articles-positions
  Scenario Outline: positions find the exchange of their ticker
    Given <program> in mode <mode>
    # the tables of the article, without VOD, and a position without a ticker
    And these positions are in its input:
      | positionId | client  | ticker | amount |
      | 1          | client1 | AAPL   | 100    |
      | 2          | client1 | VOD    | 5      |
      | 3          | client1 | FB     | 33     |
      | 4          | client2 | AAPL   | 25     |
      | 6          | client3 |        | 7      |
    And these tickers are in its input:
      | ticker | exchange | name         | founded |
      | AAPL   | NASDAQ   | Apple Inc    | 1976    |
      | FB     | NASDAQ   | Facebook Inc | 2004    |
    When the application starts
    And the application drains its input
    Then the result is:
      | positionId | client  | ticker | amount | exchange | name         | founded |
      | 1          | client1 | AAPL   | 100    | NASDAQ   | Apple Inc    | 1976    |
      | 2          | client1 | VOD    | 5      |          |              |         |
      | 3          | client1 | FB     | 33     | NASDAQ   | Facebook Inc | 2004    |
      | 4          | client2 | AAPL   | 25     | NASDAQ   | Apple Inc    | 1976    |
      | 6          | client3 |        | 7      |          |              |         |
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode         |
      | holdings | exactly_once |

  @G67.reference-changes @one-mode @timed
  Scenario Outline: when a partner changes, every row that refers to it is emitted again
    Given <program> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And every partner changes
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode          |
      | holdings | at_least_once |
      | holdings | exactly_once  |

  @G67.reference-goes @timed
  Scenario Outline: when a partner is deleted, the rows that refer to it go on without one
    Given <program> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And every partner is deleted
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program  | mode         |
      | holdings | exactly_once |

  @G66.the-old-partner-is-not-heard
  Scenario Outline: a row that moved follows its old partner no longer
    Given <program> in mode <mode>
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    # two topics have no order between them: the moves are done before the partners change
    And every row moves to another partner
    And the application drains its input
    And every partner changes
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode         |
      | holdings | exactly_once |

  @G66.one-tombstone @timed
  Scenario Outline: a row that is deleted leaves one tombstone
    Given <program> in mode <mode>
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 changes of 600 rows and 40 partners are in its inputs
    When the application starts
    And the application drains its input
    And every row is deleted
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode         |
      | holdings | exactly_once |
