@availability
Feature: A design is as ready and as far behind as it says
  Ready means that what arrives comes out soon, and lag is what Kafka knows of committed offsets and the end of the log.
  Documented in: beyond the articles. Releases wait for readiness, and alarms and scaling go by the lag.
  Broken by: a ready that is said before the state is read, or a lag that counts what was read and is not committed.
  Costs: a question to Kafka.

  @G65.ready-means-ready @one-mode
  Scenario Outline: what waits when a design says that it is ready comes out soon
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts and drains its input
    And it is stopped gracefully
    And 1000 entries over 64 accounts arrive in its input
    And it starts again
    Then while the input rests, its outcome is visible within the commit interval and 2 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | ledger  | exactly_once  |

  @G65.lag-is-true @one-mode
  Scenario Outline: a design is as far behind as it says, while it works and when it is done
    Given <program> in mode <mode> on 4 partitions, committing every 2000 ms, asked all along how far it is behind
    # small waves, one after the other: what is read and not committed is what counts
    And 400 entries over 64 accounts wait in its input
    When it starts
    And more of them arrive for 4 seconds
    And it drains its input, and rests for 2 seconds
    Then its lag was at all times what Kafka said, or had said within the second before
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | ledger  | exactly_once  |
