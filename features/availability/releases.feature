@availability
Feature: A release that goes wrong corrupts nothing
  An upgrade that is rolled back, and a deployment that is started twice, end in the right outputs or in a loud stop.
  Documented in: beyond the articles. Both happen to whoever releases often, and neither asks the stream processor first.
  Broken by: a disk that is believed over the committed offsets, ids that are drawn anew at every start.
  Costs: comparing what is on disk with what is committed, at every start.

  @G54.rolled-back
  Scenario Outline: after a release that was rolled back the old version goes on rightly, or refuses to
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And its disks are copied
    And 1000 records over 64 keys arrive
    # what the new version does until it is taken back
    And the application starts
    And the application drains its input
    And the application is stopped gracefully
    And its disks are set back to the copy
    And 1000 records over 64 keys arrive
    And the application starts unless it refuses
    And the application drains its input
    Then it refuses to start or its outputs match the model
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
      | pulse   | exactly_once  |

    @full
    Examples:
      | program | mode          |
      | ledger  | exactly_once  |

  @G55.deployed-twice
  Scenario Outline: two deployments under the same ids are noticed, and do no harm
    Given <program> in mode <mode>
    # small waves, one after the other: both have something to do
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And a second deployment starts under the same ids
    And the arrivals end
    Then one of the two deployments stops loudly or refuses to start
    And the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode         |
      | ledger  | exactly_once |

  @G55.noticed
  Scenario Outline: without transactions, two deployments under the same ids are noticed
    # that is all: nothing keeps out what the displaced one has sent already, and it may be the last word on an account
    Given <program> in mode <mode>
    # small waves, one after the other: both have something to do
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And a second deployment starts under the same ids
    And the arrivals end
    Then one of the two deployments stops loudly or refuses to start
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | ledger  | at_least_once |
