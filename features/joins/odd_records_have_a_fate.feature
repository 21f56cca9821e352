@joins
Feature: Odd records have an outcome that is stated beforehand
  A tombstone for an unknown key changes nothing, a null foreign key has no partner, and a record that cannot be read stops the design.
  Documented in: no article; beyond them.
  Broken by: records that are dropped silently, or results made from half a record.
  Costs: a look at every field.

  @G59.null-foreign-keys
  Scenario Outline: a row with a null foreign key has the result that the join gives it
    Given <program> in mode <mode>
    # a handful of rows: a reader can follow them
    And these positions are in its input:
      | positionId | client  | ticker | amount |
      | 1          | client1 |        | 1      |
      | 2          | client1 | AAPL   | 2      |
      | 3          | client2 | AAPL   | 3      |
      | 3          | client2 |        | 3      |
    And these tickers are in its input:
      | ticker | exchange | name      | founded |
      | AAPL   | NASDAQ   | Apple Inc | 1976    |
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
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
    Given <program> in mode <mode>
    # a handful of rows: a reader can follow them
    And these positions are in its input:
      | positionId | client  | ticker | amount |
      | 1          |         |        |        |
      | 2          | client1 | AAPL   | 2      |
      | 3          |         |        |        |
    And these tickers are in its input:
      | ticker | exchange | name | founded |
      | VOD    |          |      |         |
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
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
    Given <program> in mode <mode>
    And 4000 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    And a record <flaw> arrives in its input
    Then its loud stop names the unreadable record
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          | flaw                     |
      | batcher | at_least_once | with a number for a text |
      | batcher | exactly_once  | that is no JSON          |

  @G59.events-without-a-key
  Scenario Outline: an event with a null key stops the design loudly
    Given <program> in mode <mode>
    And 4000 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    And a record with a null key arrives in its input
    Then its loud stop names the unreadable record
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | batcher | exactly_once |

  @G59.null-keys
  Scenario Outline: a record with a null key stops the design loudly
    Given <program> in mode <mode>
    And 4000 changes of 600 rows and 600 partners are in its inputs
    When the application starts
    And the application drains its input
    And a record with a null key arrives in its input
    Then its loud stop names the unreadable record
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
    Given <program> in mode <mode>
    And 4000 changes of 600 rows and 600 partners are in its inputs
    When the application starts
    And the application drains its input
    And a record <flaw> arrives in its <topic>
    Then its loud stop names the unreadable record
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
