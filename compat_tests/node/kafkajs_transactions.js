// kafkajs in transactions. Its lines are described in compat_tests/transactions/drivers/line.py.
'use strict'

const { randomUUID } = require('node:crypto')
const { Kafka, logLevel, Partitioners } = require('kafkajs')
const { given, partition, obey } = require('./line')

const TAKE_MS = 30000
const PEEK_MS = 400
const POLL_MS = 20

const kafka = new Kafka({ brokers: [given.bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 20, maxRetryTime: 500 } })
const producers = new Map()
const consumers = new Map() // of groups, and readers

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

/** A consumer that keeps what it reads, of one partition or of all. */
async function consume (groupId, topic, only, readUncommitted) {
  const consumer = kafka.consumer({ groupId, readUncommitted, maxWaitTimeInMs: 100 })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const made = { consumer, groupId, topic, read: [], next: new Map() }
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      if (only !== undefined && partition !== only) return
      made.read.push(message.value.toString())
      made.next.set(partition, BigInt(message.offset) + 1n)
    }
  })
  return made
}

async function until (ended, shown) {
  for (const deadline = Date.now() + TAKE_MS; !ended(); await pause(POLL_MS)) {
    if (Date.now() > deadline) throw new Error(`only ${shown()} in ${TAKE_MS} ms`)
  }
}

const commands = {
  // A producer is initialised with its first transaction, which asks the broker for nothing else.
  async producer (name, transactionalId, timeout, group, topic) {
    const producer = kafka.producer({
      transactionalId,
      transactionTimeout: Number(timeout),
      idempotent: true,
      maxInFlightRequests: 1,
      createPartitioner: Partitioners.DefaultPartitioner
    })
    await producer.connect()
    producers.set(name, { producer, transaction: await producer.transaction(), begun: false, consumed: [] })
    if (group) consumers.set(name, await consume(group, topic, undefined, false))
  },
  async begin (name) {
    const one = producers.get(name)
    if (one.begun) one.transaction = await one.producer.transaction()
    one.begun = true
  },
  async send (name, place, ...values) {
    const { topic, partition: number } = partition(place)
    await producers.get(name).transaction.send({ topic, messages: values.map(value => ({ value, partition: number })) })
  },
  commit: name => producers.get(name).transaction.commit(),
  abort: name => producers.get(name).transaction.abort(),
  async consume (name, count) {
    const { read } = consumers.get(name)
    await until(() => read.length >= Number(count), () => read)
    return (producers.get(name).consumed = read.splice(0))
  },
  async transform (name, place) {
    const { transaction, consumed } = producers.get(name)
    await commands.send(name, place, ...consumed.map(value => `${value}'`))
    const { groupId, topic, next } = consumers.get(name)
    const partitions = [...next].map(([partition, offset]) => ({ partition, offset: String(offset) }))
    await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions }] })
  },
  async reader (name, isolation, place) {
    const { topic, partition: number } = partition(place)
    consumers.set(name, await consume(`reader-${randomUUID()}`, topic, number, isolation === 'read_uncommitted'))
  },
  async take (name, last) {
    const { read } = consumers.get(name)
    await until(() => read.includes(last), () => read)
    return read.splice(0, read.indexOf(last) + 1)
  },
  async peek (name) {
    await pause(PEEK_MS)
    return consumers.get(name).read.splice(0)
  },
  async close (name) {
    await consumers.get(name)?.consumer.disconnect()
    await producers.get(name)?.producer.disconnect()
    consumers.delete(name)
    producers.delete(name)
  }
}

obey(commands)
