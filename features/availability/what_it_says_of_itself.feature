@availability
Feature: A design is as ready as it says, and its lag is the one that it reports
  Ready means that records that arrive come out soon. Lag is the distance from the committed offsets to the end of the log.
  Documented in: beyond the articles. Releases wait for readiness, and alarms and scaling go by the lag.
  Broken by: a design that says ready before its state is read, or a lag that leaves out records that are read and not committed.
  Costs: a question to Kafka.

  @G65.ready-means-ready @one-mode @timed
  Scenario Outline: records that wait when a design says that it is ready come out soon
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And 1000 records over 64 keys arrive
    And the application starts
    Then the last states are visible within the commit interval plus 2 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | fold  | exactly_once  |

  @G65.lag-is-true @one-mode
  Scenario Outline: a design reports its true lag, while it works and when it is done
    Given a <shape> in mode <mode>
    And it reports its lag
    And its configuration is:
      | commit interval | 2000 ms |
    # small waves: records that are read and not committed count
    And 400 records over 64 keys are in its input
    When the application starts
    And records keep arriving
    And 4 seconds pass
    And the arrivals end
    And the application drains its input
    And the application stays idle for 2 seconds
    Then its reported lag is one that Kafka had within the last second
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
      | fold  | exactly_once  |
