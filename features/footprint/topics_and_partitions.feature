@footprint
Feature: What a design keeps on the broker is little, and none of it twice
  Topics and partitions are paid for by the broker, by every client and at every start, however little is in them.
  Documented in: The Kafka Streams Experience Pt. 1, "Challenge: Topic/Partition Explosion".
  Broken by: internal topics as wide as the input, a stage and a topic for each lookup, a table that is published once more.
  Costs: signals have to be made small before they are moved to fewer partitions.

  @G13.a-tenth @one-mode
  Scenario Outline: what a design keeps has a tenth of the input's partitions
    Given <program> in mode <mode> on 20 partitions
    # few: it is the partitions that count here
    And 400 signals of 40 robots wait in its inputs
    When it starts and drains its input
    Then beside its table it keeps 1 topic of 2 partitions at most
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |

  @G14.lookup @one-mode
  Scenario Outline: to look a name up costs no topic
    Given <program> in mode <mode> on 4 partitions
    And 100 names of 64 robots wait in its inputs
    When it starts and drains its input
    And 2000 signals of 64 robots arrive in its inputs
    And it drains its input
    Then the last row of every robot has its name
    And beside its table it keeps 1 topic of 1 partition at most
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |

  @G14.one-stage @one-mode
  Scenario Outline: what is aggregated is what is asked, in one stage
    Given <program> in mode <mode> on 4 partitions
    And 4000 signals of 64 robots wait in its inputs
    When it starts and drains its input
    Then for every robot it answers with the last row of its table within 2 seconds
    When 2000 signals of 64 robots arrive in its inputs
    And it drains its input
    Then for every robot it answers with the last row of its table within 2 seconds
    And beside its table it keeps 1 topic of 1 partition at most
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |

  @G14.merged
  Scenario Outline: all kinds of signal are one stream, aggregated once
    Given <program> in mode <mode> on 4 partitions
    And 100 names of 64 robots wait in its inputs
    And 4000 signals of 64 robots wait in its inputs
    When it starts and drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And beside its table it keeps 1 topic of 1 partition at most
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
    Given <program> in mode <mode> on 4 partitions
    And 2000 signals of 64 robots wait in its inputs
    When it starts and drains its input
    And it is stopped gracefully
    Then beside its table it keeps 1 topic of 1 partition at most
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | pulse   | at_least_once |
      | pulse   | exactly_once  |
