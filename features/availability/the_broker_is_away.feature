@availability
Feature: A broker out of reach and an idle partition cost no memory and hold nothing up
  A design that cannot reach the broker waits, and takes no more memory for it. If one partition is idle, it goes on with the others.
  Documented in: beyond the articles. The clients' buffers are bounded (buffer.memory, queued.max.messages.kbytes), and so is what is built on them.
  Broken by: a new client for every try, or rows that wait for a record of every partition.
  Costs: records that arrive meanwhile are late by the length of the outage.

  @G49.the-broker-is-away @wire
  Scenario Outline: five seconds without a broker are made up for, and memory hardly grows meanwhile
    # the timeout is longer than the outage: the open transaction outlives it
    Given a <shape> in mode <mode>
    And its supervisor restarts it once if it stops loudly while it drains
    And its configuration is:
      | transaction timeout | 15000 ms |
    # small waves: there is always something to do
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And the broker is out of its reach for 5 seconds
    And 2 seconds pass
    And the arrivals end
    Then its memory grows by at most 32 MiB during the outage
    When the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

  @G49.one-partition-is-idle @one-mode @timed
  Scenario Outline: records of the other partitions do not wait for an idle one
    Given a <shape> in mode <mode>
    And one partition of its input stays empty
    And its configuration is:
      | commit interval | 1000 ms |
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    Then the last states are visible within the commit interval plus 2 seconds
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | fold  | exactly_once  |
