@inputs_and_disks @beyond
Feature: A disk that fails is said aloud, and costs nothing once it is mended
  Of a file that was written when the power went only the beginning may be there, and a disk may have no room for the next one.
  Documented in: beyond the articles.
  Broken by: a file that cannot be read and is taken for none, a write that failed and is committed all the same.
  Costs: a check of what is read back, and somebody who mends the disk.

  @G57.torn-file
  Scenario Outline: who finds half a file where events wait goes on rightly, or says which file it is
    Given <program> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 2000 ms    |
    And 4000 records over 40 keys are in its input
    When the application starts
    And the application is killed with events waiting
    And its disks are copied
    And the file that it wrote last is torn
    And 4000 records over 40 keys arrive
    And the application starts from the torn file
    And the application drains its input
    Then it goes on or names the torn file
    And the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |

    @full
    Examples:
      | program | mode          |
      | batcher | exactly_once  |

  @G57.torn-checkpoint
  Scenario Outline: who finds half a file where its state or its positions are goes on rightly, or says which file it is
    Given <program> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is <down>
    And its disks are copied
    And the file that it wrote last is torn
    And 1000 records over 64 keys arrive
    And the application starts from the torn file
    And the application drains its input
    Then it goes on or names the torn file
    And the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          | down                      |
      | ledger  | exactly_once  | killed after a commit     |

    @full
    Examples:
      | program | mode          | down                      |
      | ledger  | at_least_once | stopped gracefully        |

  @G57.full-disk
  Scenario Outline: who has no room left on its disk stops loudly or waits, and when there is room again nothing is lost
    Given <program> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 2000 ms    |
      | disk size      | 64 MB      |
    # a few events a wave: some of them always wait, and are written down
    And 400 records over 40 keys are in its input
    When the application starts
    And records keep arriving
    And its disks run full
    And the arrivals end
    And the application starts
    And 4000 records over 40 keys arrive
    And the application drains its input
    Then the outputs match the model under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |

    @full
    Examples:
      | program | mode          |
      | batcher | exactly_once  |
