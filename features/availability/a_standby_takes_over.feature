@availability
Feature: With another instance beside it, the death of an instance is over in seconds
  Where another instance runs already, it takes over as soon as the session of the dead one is over, and nothing has to boot.
  Documented in: TransferWise, "Standby Replicas". They help after a death; in a rolling release of one group they do not.
  Broken by: a session that outlives its instance by far, state that is fetched only when it is needed.
  Costs: a second instance, as warm as the first.

  @G30.a-death-is-short
  Scenario Outline: after a death beside others all of the input moves on in half of the time that a start may take
    Given a <shape> in mode <mode>
    And it runs in several instances
    And its configuration is:
      | partitions      | 4      |
      | commit interval | 500 ms |
    # small waves: every partition always has something to do
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    # a session lasts 2000 ms, and no transaction is left to wait for; a start with nothing prepared has 20 seconds (@G48)
    And records keep arriving
    And instance b joins
    And instance a is killed
    And the arrivals end
    And the application drains its input
    Then all of the input moves on within 10 seconds of the death
    # the other instance has rebuilt the state of the dead one
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @quick
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
