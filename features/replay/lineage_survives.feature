@replay
Feature: Lineage survives every hop
  The envelope's id, timestamp and chain of positions reach every output, and each stage adds the position it read from.
  Documented in: Conquering Streaming Analytics With Akka And Kafka, "And Then, Oops".
  Broken by: making a new envelope in the middle, or stamping the time of processing.
  Costs: the envelope around every record.

  @G11.envelope-survives
  Scenario Outline: id, timestamp and chain of an envelope reach its outputs
    Given <program> in mode <mode> on 4 partitions
    And 4000 republished entries over 64 accounts wait in its input
    When it starts and drains its input
    Then every output carries its input's id, timestamp and headers, and the chain of positions
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
  Scenario Outline: an output behind two stages gives the positions of both
    Given relay in mode at_least_once feeds <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in the relay's input
    When the relay starts and drains its input
    And it starts and drains its input
    Then every output carries its input's id, timestamp and headers, and the chain of positions
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | ledger  | at_least_once |

    @core
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |
