@availability
Feature: A recovery takes a limited time, and the report says how long
  A dead design that is started again with nothing prepared shows new outputs within the stated time.
  Documented in: beyond the articles. A design that is right and absent for a minute is of no use either.
  Broken by: a long session of the dead member, which the group waits for; a state that is read back by replaying everything.
  Costs: a session timeout that is short enough, and the time to read the state.

  @G48.back-in-time @one-mode
  Scenario Outline: a design that died is back in time
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <moment>
    And 1000 records over 64 keys arrive
    And the application starts with nothing prepared
    Then its first new output is visible within 20 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | moment                    |
      | fold  | at_least_once | between output and commit |
      | fold  | exactly_once  | after a commit            |
