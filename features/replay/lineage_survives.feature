@replay
Feature: Lineage survives every hop
  The envelope's id, timestamp and chain of positions reach every output, and each stage adds the position it read from.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "And Then, Oops".
  Broken by: making a new envelope in the middle, or stamping the time of processing.
  Costs: the envelope around every record.

  @G11.envelope-survives
  Scenario Outline: id, timestamp and chain of an envelope reach its outputs
    Given <program> in mode <mode>
    And 4000 republished records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then every output carries the id, timestamp, headers and positions of its input
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | relay   | exactly_once  |

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |

    @full
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | exactly_once  |

  @G12.position-at-every-stage
  Scenario Outline: an output after two stages holds the positions of both
    Given <program> in mode <mode>
    And a relay in mode at_least_once feeds it
    And 4000 records over 64 keys are in the relay's input
    When the relay starts
    And the relay drains its input
    And the application starts
    And the application drains its input
    Then every output carries the id, timestamp, headers and positions of its input
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | ledger  | at_least_once |

    @core
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |
