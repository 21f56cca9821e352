@joins
Feature: Odd records have a fate that is stated beforehand
  A tombstone for an unknown key changes nothing, a null foreign key has no partner, and what cannot be read stops the design.
  Documented in: no article; beyond them.
  Broken by: records that are dropped without a word, or results made up from half of one.
  Costs: a look at every field.

  @G59.null-foreign-keys
  Scenario Outline: a row with a null foreign key has the result that the join gives it
    Given <program> in mode <mode> on 4 partitions
    # a handful of rows: they are read, not counted
    And these positions wait in its input:
      | positionId | client  | ticker | amount |
      | 1          | client1 |        | 1      |
      | 2          | client1 | AAPL   | 2      |
      | 3          | client2 | AAPL   | 3      |
      | 3          | client2 |        | 3      |
    And these tickers wait in its input:
      | ticker | exchange | name      | founded |
      | AAPL   | NASDAQ   | Apple Inc | 1976    |
    When it starts and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode          |
      | tickers  | at_least_once |

    @full
    Examples:
      | program  | mode          |
      | holdings | exactly_once  |

  @G59.tombstones
  Scenario Outline: a tombstone for an unknown key changes nothing
    Given <program> in mode <mode> on 4 partitions
    # a handful of rows: they are read, not counted
    And these positions wait in its input:
      | positionId | client  | ticker | amount |
      | 1          |         |        |        |
      | 2          | client1 | AAPL   | 2      |
      | 3          |         |        |        |
    And these tickers wait in its input:
      | ticker | exchange | name | founded |
      | VOD    |          |      |         |
    When it starts and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode          |
      | tickers  | exactly_once  |

    @full
    Examples:
      | program  | mode          |
      | holdings | at_least_once |

  @G59.unreadable-events
  Scenario Outline: an event that cannot be read stops the design loudly
    Given <program> in mode <mode> on 4 partitions
    And 4000 events of 40 customers wait in its input
    When it starts and drains its input
    And a record <flaw> arrives in its input
    Then it stops loudly and names the record
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          | flaw                     |
      | batcher | at_least_once | with a number for a text |
      | batcher | exactly_once  | that is no JSON          |

  @G59.events-without-a-key
  Scenario Outline: an event with a null key stops the design loudly
    Given <program> in mode <mode> on 4 partitions
    And 4000 events of 40 customers wait in its input
    When it starts and drains its input
    And a record with a null key arrives in its input
    Then it stops loudly and names the record
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | batcher | exactly_once |

  @G59.null-keys
  Scenario Outline: a record with a null key stops the design loudly
    Given <program> in mode <mode> on 4 partitions
    And 4000 changes of 600 rows with 600 partners wait in its inputs
    When it starts and drains its input
    And a record with a null key arrives in its input
    Then it stops loudly and names the record
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode          |
      | clients  | at_least_once |

    @full
    Examples:
      | program  | mode          |
      | holdings | exactly_once  |

  @G59.unreadable
  Scenario Outline: a record that cannot be read stops the design loudly
    Given <program> in mode <mode> on 4 partitions
    And 4000 changes of 600 rows with 600 partners wait in its inputs
    When it starts and drains its input
    And a record <flaw> arrives in its <topic>
    Then it stops loudly and names the record
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | program  | mode          | flaw                   | topic        |
      | tickers  | exactly_once  | that is no JSON        | input        |
      | holdings | at_least_once | with text for a number | second input |

    @full
    Examples:
      | program  | mode          | flaw                   | topic        |
      | clients  | exactly_once  | without a field        | second input |
