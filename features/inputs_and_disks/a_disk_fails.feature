@inputs_and_disks @beyond
Feature: A disk that fails is reported, and costs nothing once it is mended
  Of a file that was written when the power failed only the beginning may be there, and a disk may have no room for the next one.
  Documented in: beyond the articles.
  Broken by: a file that cannot be read and is treated as missing, a write that failed and is committed all the same.
  Costs: a check of every file that is read back, and an operator who mends the disk.

  @G57.torn-file
  Scenario Outline: a design that finds half a file where events wait goes on right, or says which file it is
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 2000 ms    |
    And 4000 records over 40 keys are in its input
    When the application starts
    And the application is killed with events waiting
    And its disks are copied
    And the newest file that it reads back is torn
    And 4000 records over 40 keys arrive
    # if it stops loudly, its disks are mended first: the copy takes their place
    And the application starts on the torn disk
    And the application drains its input
    Then it goes on or names the torn file
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | batch | exactly_once  |

  @G57.torn-checkpoint
  Scenario Outline: a design that finds half a file where its state or its positions are goes on right, or says which file it is
    Given a <shape> in mode <mode>
    And 4000 records over 64 keys are in its input
    When the application starts
    And the application is <down>
    And its disks are copied
    And the newest file that it reads back is torn
    And 1000 records over 64 keys arrive
    # if it stops loudly, its disks are mended first: the copy takes their place
    And the application starts on the torn disk
    And the application drains its input
    Then it goes on or names the torn file
    And the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          | down                      |
      | fold  | exactly_once  | killed after a commit     |

    @full
    Examples:
      | shape | mode          | down                      |
      | fold  | at_least_once | stopped gracefully        |

  @G57.full-disk
  Scenario Outline: a design with no room left on its disk stops loudly or waits, and loses nothing once there is room again
    Given a <shape> in mode <mode>
    And its configuration is:
      | batch size     | 50 records |
      | batch interval | 2000 ms    |
      | disk size      | 64 MB      |
    # small waves: some events always wait, and are written to disk
    And 400 records over 40 keys are in its input
    When the application starts
    And records keep arriving
    # after 3 seconds it is killed; then there is room again
    And its disks run full until it stops loudly or is killed
    And the arrivals end
    And the application starts
    And 4000 records over 40 keys arrive
    And the application drains its input
    Then the outputs match the model in order and count under <mode>
    And nothing else changes on the broker

    @core
    Examples:
      | shape | mode          |
      | batch | at_least_once |

    @full
    Examples:
      | shape | mode          |
      | batch | exactly_once  |
