@inputs_and_disks @beyond
Feature: A record that cannot be read is set aside, or stops the design
  It goes to the dead letters once, with its position and the reason, and all else goes on. Without a dead-letter topic the design stops loudly.
  Documented in: beyond the articles. Kafka Streams has a dead-letter topic for it (KIP-1034), and without one dies of it by default.
  Broken by: a handler that logs and goes on, or dead letters that are sent by a producer of their own.
  Costs: a topic, and an operator who reads it.

  @G46.set-aside
  Scenario Outline: a record that cannot be read is a dead letter, and all else is counted
    Given <program> in mode <mode>
    And it has a dead-letter topic
    And some records of its input cannot be read
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then the dead letters match the unreadable records under <mode>
    And the outputs match the model in order and count under <mode>
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
  Scenario Outline: a record that was set aside before a crash is a dead letter as often as the mode allows
    Given <program> in mode <mode>
    And it has a dead-letter topic
    And some records of its input cannot be read
    # 20000 accounts: a transaction has to stay open long enough to be observed
    And 20000 records over 20000 keys are in its input
    When the application starts
    And the application is killed <moment>
    Then the dead letters match the unreadable records under <mode>
    And the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the dead letters match the unreadable records under <mode>
    And the outputs match the model in order and count under <mode>
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
  Scenario Outline: without a dead-letter topic, a record that cannot be read stops the design loudly
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And a record <flaw> arrives in its input
    Then its loud stop names the unreadable record
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
