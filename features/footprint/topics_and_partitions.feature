@footprint
Feature: What a design keeps on the broker is little, and none of it twice
  Topics and partitions are paid for by the broker, by every client and at every start, however little is in them.
  Documented in: The Kafka Streams Experience Pt. 1, "Challenge: Topic/Partition Explosion".
  Broken by: internal topics as wide as the input, a stage and a topic for each lookup, a table that is published once more.
  Costs: signals have to be made smaller before they are moved to fewer partitions.

  @G13.a-tenth @one-mode
  Scenario Outline: what a design keeps has a tenth of the input's partitions
    Given a <shape> in mode <mode>
    And its configuration is:
      | partitions | 20 |
    # few: the partitions count here
    And 400 records over 40 keys are in its input
    When the application starts
    And the application drains its input
    Then it keeps at most 1 topic of 2 partitions beside its table
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | table | at_least_once |
      | table | exactly_once  |

  @G14.lookup @one-mode
  Scenario Outline: the lookup of a name costs no topic
    Given <program> in mode <mode>
    And 100 names over 64 keys are in its input
    When the application starts
    And the application drains its input
    And 2000 records over 64 keys arrive
    And the application drains its input
    Then the last row of every robot has its name
    And it keeps at most 1 topic of 1 partition beside its table
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |

  @G14.one-stage @one-mode
  Scenario Outline: the table that is aggregated is the one that is asked, in one stage
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then it answers every key with the last row of its table within 2 seconds
    When 2000 records over 64 keys arrive
    And the application drains its input
    Then it answers every key with the last row of its table within 2 seconds
    And it keeps at most 1 topic of 1 partition beside its table
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | table | at_least_once |
      | table | exactly_once  |

  @G14.merged
  Scenario Outline: all kinds of signal are one stream, aggregated once
    Given <program> in mode <mode>
    And 100 names over 64 keys are in its input
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And it keeps at most 1 topic of 1 partition beside its table
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | pulse   | exactly_once  |

    @core
    Examples:
      | program | mode          |
      | pulse   | at_least_once |

  @G15.no-copy @one-mode
  Scenario Outline: the table's own topic is read as the table, and there is no second one
    Given a <shape> in mode <mode>
    # few: the topics count here
    And 2000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    Then it keeps at most 1 topic of 1 partition beside its table
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | table | at_least_once |
      | table | exactly_once  |
