@availability
Feature: A recovery takes a limited time, and the report says how long
  Whoever starts a dead design anew, with nothing prepared, sees new outputs within the stated time.
  Documented in: beyond the articles. A design that is right and away for a minute is no good either.
  Broken by: a dead member that is waited for until a long session ends, state that is read back by replaying everything.
  Costs: a session timeout that is short enough, and what it takes to read the state.

  @G48.back-in-time @one-mode
  Scenario Outline: a design that died is back in time
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is killed <moment>
    And 1000 records over 64 keys arrive
    And the application starts with nothing prepared
    Then its first new output is visible within 20 seconds
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | moment                    |
      | ledger  | at_least_once | between output and commit |
      | ledger  | exactly_once  | after a commit            |
