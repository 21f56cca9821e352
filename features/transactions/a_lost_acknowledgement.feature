@transactions
Feature: A lost acknowledgement leads to another try, and to no second copy
  A producer that gets no acknowledgement sends the batch again; the broker knows the batches that it has, so the log holds it once.
  Documented in: Enabling Exactly-Once in Kafka Streams, "Failure Scenario #1: Duplicate Writes".
  Broken by: a producer without idempotence that tries again, or one that does not try again.
  Costs: a sequence number a batch.

  @G21.acknowledgement-lost @wire
  Scenario Outline: a batch that the broker has, and whose acknowledgement was lost, is not duplicated
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    # its connection is lost with it: TCP loses nothing from the middle of a stream
    And the response to its next Produce is lost with its connection
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | fold  | exactly_once  |

  @G21.connection-silent @wire
  Scenario Outline: if a connection falls silent, the client gives it up, and sends again what is not acknowledged
    # the broker has applied the request; the client waits on the open connection for its own request timeout
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And its connection falls silent after its next Produce
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @full
    Examples:
      | shape | mode          |
      | map   | at_least_once |

  @G21.request-lost @wire
  Scenario Outline: a batch that the broker never received is sent again
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And its next Produce is lost with its connection
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | map   | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

  @G21.applied-and-refused @wire
  Scenario Outline: a batch that the broker has, though it was rejected for too few replicas, is not duplicated
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    # the leader has appended it, and then too few replicas are left to acknowledge it: whether it stays is unknown
    And the response to its next Produce is turned into NOT_ENOUGH_REPLICAS_AFTER_APPEND
    And the application drains its input
    Then no output is duplicated
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | map   | at_least_once |
      | fold  | exactly_once  |
