// A relay with kafkajs: it writes every record of `input` to `output`, with one hop more.
'use strict'

const readline = require('node:readline')
const { Kafka, logLevel } = require('kafkajs')

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

function say (message) {
  process.stdout.write(JSON.stringify(message) + '\n')
}

function giveUp (error) {
  console.error(error)
  let kind = 'storage'
  if (error instanceof Poison) kind = 'poison'
  if (FENCED.includes(error.type)) kind = 'fenced'
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
    const id = start.application_id
    this.output = start.topics.output
    this.exactlyOnce = start.mode === 'exactly_once'
    this.group = id
    const kafka = new Kafka({
      clientId: id,
      brokers: [start.bootstrap],
      logLevel: logLevel.WARN,
      logCreator: () => ({ namespace, label, log }) =>
        console.error(log.timestamp, label, namespace, log.message, log.error || ''),
      retry: { initialRetryTime: 50, retries: 10 },
    })
    const writes = { idempotent: true, maxInFlightRequests: 1 }
    if (this.exactlyOnce) {
      writes.transactionalId = id
      writes.transactionTimeout = start.transaction_timeout_ms
    }
    this.producer = kafka.producer(writes)
    await this.producer.connect()
    if (this.exactlyOnce) { // the same id at every start: a successor fences its predecessor
      const first = await this.producer.transaction()
      await first.abort()
    }
    this.consumer = kafka.consumer({
      groupId: id,
      sessionTimeout: start.session_timeout_ms,
      heartbeatInterval: Math.floor(start.session_timeout_ms / 4),
      readUncommitted: false,
      maxWaitTimeInMs: 100,
    })
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [start.topics.input], fromBeginning: true })
    const held = new Promise(resolve => {
      this.consumer.on(this.consumer.events.GROUP_JOIN, ({ payload }) => {
        if (Object.values(payload.memberAssignment).flat().length) resolve()
      })
    })
    this.consumer.on(this.consumer.events.CRASH, ({ payload }) => giveUp(payload.error))
    await this.consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      eachBatch: each => this.step(each).catch(error => {
        if (error instanceof Poison || FENCED.includes(error.type)) giveUp(error)
        throw error
      }),
    })
    await held
  }

  /** Write records until each is acknowledged, and commit their offsets. */
  async step ({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
    if (!batch.messages.length || !isRunning() || isStale()) return
    const messages = batch.messages.map(record => ({
      key: record.key,
      value: withHop(batch.topic, batch.partition, record),
      headers: record.headers,
      timestamp: record.timestamp,
    }))
    const last = batch.messages[batch.messages.length - 1].offset
    const offset = (BigInt(last) + 1n).toString()
    const partitions = [{ partition: batch.partition, offset }]
    if (this.exactlyOnce) {
      const transaction = await this.producer.transaction()
      try {
        await transaction.send({ topic: this.output, messages })
        const topics = [{ topic: batch.topic, partitions }]
        await transaction.sendOffsets({ consumerGroupId: this.group, topics })
        await transaction.commit()
      } catch (error) {
        await transaction.abort().catch(() => {})
        throw error
      }
    } else {
      await this.producer.send({ topic: this.output, messages })
      await this.consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset }])
    }
    resolveOffset(last)
    await heartbeat()
  }

  async close () {
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
