@transactions
Feature: A lost acknowledgement leads to another try, and to no second copy
  Who hears nothing of what it has sent sends it again; the broker knows what it has, so it stands there once.
  Documented in: Enabling Exactly-Once in Kafka Streams, "Failure Scenario #1: Duplicate Writes".
  Broken by: a producer without idempotence that tries again, or one that does not.
  Costs: a sequence number a batch.

  @G21.acknowledgement-lost @wire
  Scenario Outline: what the broker has and nobody was told of does not stand there twice
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    # its connection goes with it: TCP loses nothing out of the middle
    And the response to its next Produce is lost with its connection
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | exactly_once  |

  @G21.connection-silent @wire
  Scenario Outline: where nothing is heard any more, the client gives the connection up, and sends again what is not acknowledged
    # an open connection is waited on for the client's own request timeout
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And its connection falls silent after its next Produce
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | program | mode          |
      | relay   | at_least_once |

  @G21.request-lost @wire
  Scenario Outline: what the broker never had is sent again
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And its next Produce is lost with its connection
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | relay   | at_least_once |

    @full
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |

  @G21.applied-and-refused @wire
  Scenario Outline: what the broker has, though it was refused for want of acknowledgements, does not stand there twice
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    # the leader has it, and by the time that it is acknowledged too few replicas are left: nobody can tell whether it stays
    And the response to its next Produce is turned into NOT_ENOUGH_REPLICAS_AFTER_APPEND
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | relay   | at_least_once |
      | ledger  | exactly_once  |
