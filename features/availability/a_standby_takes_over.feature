@availability
Feature: With somebody who stands by, a death is over in seconds
  Where another instance runs already, what the dead one did goes on as soon as its session is over, and nobody boots for it.
  Documented in: TransferWise, "Standby Replicas". They help after a death; in a rolling release of one group they do not.
  Broken by: a session that outlives its instance by far, state that is fetched only when it is needed.
  Costs: a second instance, as warm as the first.

  @G30.a-death-is-short
  Scenario Outline: after a death beside others all of the input goes on in half of the time that a start may take
    Given <program> in mode <mode> on 4 partitions, in several instances, committing every 500 ms
    # small waves, one after the other: every partition has something to do all the time
    And 400 entries over 64 accounts wait in its input
    When it starts and drains its input
    # its session lasts 2000 ms, and it leaves no transaction that its successor would have to wait for; who starts with nothing prepared has 20 seconds (@G48)
    And b joins and a is killed while more of them arrive
    And it drains its input
    Then all of the input went on within 10 seconds
    # what the dead one knew was rebuilt by the other
    And the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @quick
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
