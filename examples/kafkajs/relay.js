// A relay with kafkajs: it writes every record of `input` to `output`, with one hop more.
'use strict'

const readline = require('node:readline')
const { Kafka, KafkaJSNonRetriableError, logLevel } = require('kafkajs')

const MOST_RECORDS = 250 // of one transaction, or of one commit
const MOST_FAILURES = 5 // in a row, each answered with new clients
const FENCED = ['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED']
const HELLO = {
  type: 'hello',
  protocol: 1,
  name: 'kafkajs',
  version: '2.2.4',
  language: 'javascript',
  programs: ['relay'],
  modes: ['at_least_once', 'exactly_once'],
}

/** A record that cannot be read. */
class Poison extends Error {}

/** A transaction of which the broker alone knows whether it is committed. */
class Undecided extends KafkaJSNonRetriableError {
  constructor (reason) {
    super(reason)
    this.reason = reason // as a `cause`, kafkajs would start the old clients again for it
  }
}

/** Return an error and its causes. */
function causes (error) {
  return error ? [error, ...causes(error.cause || error.reason)] : []
}

function isFenced (error) {
  return causes(error).some(each => FENCED.includes(each.type))
}

/** Tell whether another try may succeed. */
function isPassing (error) {
  return causes(error).some(each => each.retriable)
}

function say (message) {
  process.stdout.write(JSON.stringify(message) + '\n')
}

function giveUp (error) {
  console.error(error)
  let kind = 'storage'
  if (error instanceof Poison) kind = 'poison'
  if (isFenced(error)) kind = 'fenced'
  process.stdout.write(JSON.stringify({ type: 'failed', kind, message: String(error) }) + '\n', () =>
    process.exit(1))
}

/** Encode a number as protobuf does. */
function varint (value) {
  const bytes = []
  for (let left = BigInt(value); ; left >>= 7n) {
    if (left < 128n) return Buffer.from([...bytes, Number(left)])
    bytes.push(Number(left & 127n) | 128)
  }
}

/** Tell whether bytes are whole fields 1 to 4, each of its own wire type. */
function isEnvelope (value) {
  const tags = [1 << 3 | 2, 2 << 3, 3 << 3 | 2, 4 << 3 | 2]
  let at = 0
  while (at < value.length) {
    const tag = value[at++]
    if (!tags.includes(tag)) return false
    let found = 0n
    let shift = 0n
    for (;;) {
      if (at === value.length || shift > 63n) return false
      const byte = value[at++]
      found |= BigInt(byte & 127) << shift
      shift += 7n
      if (byte < 128) break
    }
    if ((tag & 7) === 2) {
      if (found > BigInt(value.length - at)) return false
      at += Number(found)
    }
  }
  return true
}

/** Append a record's position: a repeated field may be continued behind all others. */
function withHop (topic, partition, { key, value, offset }) {
  const at = `${topic}-${partition}@${offset}`
  if (key === null || value === null) throw new Poison(`${at} has no key or no value`)
  if (!isEnvelope(value)) throw new Poison(`${at} holds no envelope`)
  const name = Buffer.from(topic)
  const hop = Buffer.concat([
    Buffer.from([1 << 3 | 2]), varint(name.length), name,
    Buffer.from([2 << 3]), varint(partition),
    Buffer.from([3 << 3]), varint(offset),
  ])
  return Buffer.concat([value, Buffer.from([3 << 3 | 2]), varint(hop.length), hop])
}

class Relay {
  async open (start) {
    this.start = start
    this.group = start.application_id
    this.output = start.topics.output
    this.exactlyOnce = start.mode === 'exactly_once'
    this.heartbeatMs = Math.floor(start.session_timeout_ms / 4)
    this.failures = 0
    this.stopping = false
    this.kafka = new Kafka({
      clientId: this.group,
      brokers: [start.bootstrap],
      logLevel: logLevel.WARN,
      logCreator: () => ({ namespace, label, log }) =>
        console.error(log.timestamp, label, namespace, log.message, log.error || ''),
      requestTimeout: 10_000,
      retry: { retries: 4 },
    })
    await this.connect()
  }

  /** Make both clients, and join the group until partitions are held. */
  async connect () {
    const writes = { idempotent: true, maxInFlightRequests: 1 }
    if (this.exactlyOnce) {
      writes.transactionalId = this.group
      writes.transactionTimeout = this.start.transaction_timeout_ms
    }
    this.producer = this.kafka.producer(writes)
    await this.producer.connect()
    if (this.exactlyOnce) { // the same id at every start: a successor fences its predecessor
      const first = await this.producer.transaction()
      await first.abort()
    }
    this.consumer = this.kafka.consumer({
      groupId: this.group,
      sessionTimeout: this.start.session_timeout_ms,
      heartbeatInterval: this.heartbeatMs,
      readUncommitted: false,
      maxWaitTimeInMs: 100,
    })
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [this.start.topics.input], fromBeginning: true })
    const held = new Promise(resolve => {
      this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
        if (Object.values(payload.memberAssignment).flat().length) resolve()
      })
    })
    this.consumer.on(this.consumer.events.CRASH, ({ payload }) => {
      if (!payload.restart) this.reconnect(payload.error).catch(giveUp)
    })
    await this.consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: each => this.relay(each).catch(error => {
        if (error instanceof Poison || isFenced(error)) giveUp(error)
        throw error
      }),
    })
    await held
  }

  /**
   * Replace both clients, after kafkajs has given up.
   *
   * The new producer settles the transaction of the old one, and the new consumer begins at the
   * offsets that are committed then.
   */
  async reconnect (error) {
    this.failures += 1
    if (this.failures > MOST_FAILURES) throw error
    await this.producer.disconnect()
    if (!this.stopping) await this.connect()
  }

  /** Relay a batch of one partition. The group hears of this member all the while. */
  async relay ({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
    const beats = setInterval(() => heartbeat().catch(() => {}), this.heartbeatMs)
    try {
      for (let from = 0; from < batch.messages.length; from += MOST_RECORDS) {
        if (!isRunning() || isStale()) return
        const records = batch.messages.slice(from, from + MOST_RECORDS)
        await this.step(batch.topic, batch.partition, records)
        this.failures = 0
        resolveOffset(records[records.length - 1].offset)
        await heartbeat()
      }
    } finally {
      clearInterval(beats)
    }
  }

  /** Write records until each is acknowledged, and commit their offset. */
  async step (topic, partition, records) {
    const messages = records.map(record => ({
      key: record.key,
      value: withHop(topic, partition, record),
      headers: record.headers,
      timestamp: record.timestamp,
    }))
    const offset = (BigInt(records[records.length - 1].offset) + 1n).toString()
    if (!this.exactlyOnce) {
      await this.write(messages)
      await this.consumer.commitOffsets([{ topic, partition, offset }])
      return
    }
    try {
      const transaction = await this.producer.transaction()
      await transaction.send({ topic: this.output, messages })
      const topics = [{ topic, partitions: [{ partition, offset }] }]
      await transaction.sendOffsets({ consumerGroupId: this.group, topics })
      await transaction.commit()
    } catch (error) {
      // kafkajs can use no producer again whose EndTxn has failed (its issue 1275).
      throw new Undecided(error)
    }
  }

  /**
   * Write records until each is acknowledged.
   *
   * kafkajs stays on a connection whose requests time out (its pull request 1783), so this connects
   * again. The producer keeps its id: the same batch has the same sequence numbers at each try.
   */
  async write (messages) {
    for (;;) {
      try {
        await this.producer.connect()
        await this.producer.send({ topic: this.output, messages })
        return
      } catch (error) {
        if (this.stopping || !isPassing(error)) throw error
        console.error(error)
        await this.producer.disconnect()
      }
    }
  }

  async close () {
    this.stopping = true
    await this.consumer.disconnect()
    await this.producer.disconnect()
  }
}

async function main () {
  let relay
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line)
    if (asked.type === 'hello') {
      say(HELLO)
    } else if (asked.type === 'start') {
      relay = new Relay()
      await relay.open(asked)
      const id = asked.application_id
      say({ type: 'ready', consumer_group: id, transactional_id_prefix: id })
    } else if (asked.type === 'stop') {
      await relay.close()
      say({ type: 'stopped' })
      process.exit(0)
    } else {
      say({ type: 'error', definite: true, message: `${asked.type} is not offered` })
    }
  }
}

process.on('unhandledRejection', giveUp)
main().catch(giveUp)
