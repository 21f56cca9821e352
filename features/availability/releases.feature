@availability
Feature: A release that goes wrong corrupts nothing
  An upgrade that is rolled back, and a deployment that is started twice, end in the right outputs or in a loud stop.
  Documented in: beyond the articles. Both happen where releases are frequent, and neither asks the stream processor first.
  Broken by: a disk that is trusted over the committed offsets, ids that are new at every start.
  Costs: comparing what is on disk with what is committed, at every start.

  @G54.rolled-back
  Scenario Outline: after a release that was rolled back the old version goes on right, or refuses to start
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And the application is stopped gracefully
    And its disks are copied
    And 1000 records over 64 keys arrive
    # the new version runs until it is rolled back
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
      | shape | mode          |
      | fold  | at_least_once |
      | table | exactly_once  |

    @full
    Examples:
      | shape | mode          |
      | fold  | exactly_once  |

  @G55.deployed-twice
  Scenario Outline: two deployments under the same ids share the input or are noticed, and do no harm
    Given a <shape> in mode <mode>
    # small waves: both deployments always have something to do; they have 10 seconds to notice, and both are ended then
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And two deployments run under the same ids for at most 10 seconds
    And the arrivals end
    Then they share the input, or one of them stops loudly or refuses to start
    And the visible outputs are the fold of the committed input
    When the application starts
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode         |
      | fold  | exactly_once |

  @G55.noticed
  Scenario Outline: without transactions, two deployments under the same ids share the input or are noticed
    # no more than that: outputs that the displaced deployment sent already stay, and one may be the last of its account
    Given a <shape> in mode <mode>
    # small waves: both deployments always have something to do; they have 10 seconds to notice, and both are ended then
    And 400 records over 64 keys are in its input
    When the application starts
    And the application drains its input
    And records keep arriving
    And two deployments run under the same ids for at most 10 seconds
    And the arrivals end
    Then they share the input, or one of them stops loudly or refuses to start
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | fold  | at_least_once |
