@availability
Feature: A design is as ready and as far behind as it says
  Ready means that what arrives comes out soon, and lag is what Kafka knows of committed offsets and the end of the log.
  Documented in: beyond the articles. Releases wait for readiness, and alarms and scaling go by the lag.
  Broken by: a ready that is said before the state is read, or a lag that counts what was read and is not committed.
  Costs: a question to Kafka.

  @G65.ready-means-ready @one-mode @timed
  Scenario Outline: what waits when a design says that it is ready comes out soon
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts
    Then every outcome is visible within the commit interval and 2 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | ledger  | exactly_once  |

  @G65.lag-is-true @one-mode
  Scenario Outline: a design is as far behind as it says, while it works and when it is done
    Given <program> in mode <mode>
    And it reports its lag
    And its configuration is:
      | commit interval | 2000 ms |
    # small waves, one after the other: what is read and not committed is what counts
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And 4 seconds pass
    And the arrivals end
    And the application stays idle for 2 seconds
    Then its reported lag is Kafka's of at most one second before
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | ledger  | exactly_once  |
