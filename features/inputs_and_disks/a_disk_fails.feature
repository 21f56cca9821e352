@inputs_and_disks @beyond
Feature: A disk that fails is said aloud, and costs nothing once it is mended
  Of a file that was written when the power went only the beginning may be there, and a disk may have no room for the next one.
  Documented in: beyond the articles.
  Broken by: a file that cannot be read and is taken for none, a write that failed and is committed all the same.
  Costs: a check of what is read back, and somebody who mends the disk.

  @G57.torn-file
  Scenario Outline: who finds half a file where events wait goes on rightly, or says which file it is
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 2000 ms
    And 4000 events of 40 customers wait in its input
    When it starts
    And it is killed with events waiting
    And its disks are kept as they are
    And the file that it wrote last is torn
    And 4000 events of 40 customers arrive in its input
    And it starts again and drains its input, from mended disks if it stops loudly
    Then it has gone on, or said which file is torn
    And the outputs are the model's, in the order and as often as <mode> allows
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
    Given <program> in mode <mode> on 4 partitions
    And 4000 entries over 64 accounts wait in its input
    When it starts
    And it is <down>
    And its disks are kept as they are
    And the file that it wrote last is torn
    And 1000 entries over 64 accounts arrive in its input
    And it starts again and drains its input, from mended disks if it stops loudly
    Then it has gone on, or said which file is torn
    And the outputs are the model's, in the order and as often as <mode> allows
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
    Given <program> in mode <mode> on 4 partitions, with batches of 50 events or 2000 ms, on disks of 64 MB
    # a few events a wave: some of them always wait, and are written down
    And 400 events of 40 customers wait in its input
    When it starts
    And its disks run full until it stops loudly or is killed, while more of them arrive
    And it starts again
    And 4000 events of 40 customers arrive in its input
    And it drains its input
    Then the outputs are the model's, in the order and as often as <mode> allows
    And nothing else changes on the broker

    @core
    Examples:
      | program | mode          |
      | batcher | at_least_once |

    @full
    Examples:
      | program | mode          |
      | batcher | exactly_once  |
