@inputs_and_disks @beyond
Feature: What cannot be read is set aside, or stops the design
  What cannot be read goes to the dead letters once, with where it was and why, and all else goes on; where there is no topic for it, the design stops loudly.
  Documented in: beyond the articles. Kafka Streams has a dead-letter topic for it (KIP-1034), and without one dies of it by default.
  Broken by: a handler that logs and goes on, or dead letters that are sent by a producer of their own.
  Costs: a topic, and somebody who reads it.

  @G46.set-aside
  Scenario Outline: what cannot be read is a dead letter, and all else is counted
    Given <program> in mode <mode> on 4 partitions, with a dead-letter topic
    And 4000 entries over 64 accounts wait in its input, and some between them cannot be read
    When it starts and drains its input
    Then the dead letters are what cannot be read of the committed input, as often as <mode> allows
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |

    @full
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | relay   | exactly_once  |
      | ledger  | exactly_once  |

  @G46.set-aside-through-a-crash
  Scenario Outline: what was set aside before a crash is a dead letter as often as the mode allows
    Given <program> in mode <mode> on 4 partitions, with a dead-letter topic
    # 20000 accounts: one transaction has to stay open long enough to be met
    And 20000 entries over 20000 accounts wait in its input, and some between them cannot be read
    When it starts
    And it is killed <moment>
    Then the dead letters are what cannot be read of the committed input, as often as <mode> allows
    And the visible outputs are the fold of the committed input
    When it starts again and drains its input
    Then the dead letters are what cannot be read of the committed input, as often as <mode> allows
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | moment                    |
      | relay   | exactly_once  | with a transaction open   |

    @full
    Examples:
      | program | mode          | moment                    |
      | ledger  | exactly_once  | with a transaction open   |
      | relay   | at_least_once | between output and commit |

  @G46.loud-without-one
  Scenario Outline: without a dead-letter topic, what cannot be read stops the design loudly
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    And a record <flaw> arrives in its input
    Then it stops loudly and names the record
    And the visible outputs are the fold of the committed input
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | flaw              |
      | ledger  | exactly_once  | that is cut short |

    @full
    Examples:
      | program | mode          | flaw              |
      | relay   | at_least_once | without a key     |
