// kafkajs as a member: no static membership, no cooperative rebalancing, its own RoundRobinAssigner.
'use strict'

const { Kafka, logLevel } = require('kafkajs')
const { given, say, text, owns, record, serve } = require('./line')

const kafka = new Kafka({ brokers: [given.bootstrap], clientId: given.client_id, logLevel: logLevel.NOTHING })
const consumer = kafka.consumer({
  groupId: given.group,
  sessionTimeout: Number(given.session_ms),
  heartbeatInterval: Number(given.heartbeat_ms),
  maxWaitTimeInMs: 100
})
const heads = new Map() // 'topic:partition' -> the offset after the last record read
let held = []

consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
  held = Object.entries(payload.memberAssignment).flatMap(([topic, numbers]) =>
    numbers.map(partition => ({ topic, partition })))
  owns(held)
})
consumer.on(consumer.events.REBALANCING, () => owns(held = []))
consumer.on(consumer.events.CRASH, ({ payload }) => {
  owns(held = [])
  if (!payload.restart) say('fatal', text(payload.error))
})

const commit = ({ topic, partition }, offset) => consumer.commitOffsets([{ topic, partition, offset: String(offset) }])

async function join () {
  await consumer.subscribe({ topics: given.topics.split(','), fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ topic, partition, message }) => {
      heads.set(`${topic}:${partition}`, BigInt(message.offset) + 1n)
      record(topic, partition, message.offset, message.value)
    }
  })
}

async function committed ({ topic, partition }) {
  const admin = kafka.admin()
  await admin.connect()
  const [found] = await admin.fetchOffsets({ groupId: given.group, topics: [topic] })
  await admin.disconnect()
  const { offset } = found.partitions.find(one => one.partition === partition)
  return offset === '-1' ? '-' : offset
}

async function commitRead () {
  const read = held.filter(p => heads.has(`${p.topic}:${p.partition}`))
  for (const p of read) await commit(p, heads.get(`${p.topic}:${p.partition}`))
}

consumer.connect().then(() => serve({
  join,
  commit: (where, offset) => where ? commit(where, offset) : commitRead(),
  committed,
  seek: async ({ topic, partition }, offset) => consumer.seek({ topic, partition, offset }),
  pause: async ({ topic, partition }) => consumer.pause([{ topic, partitions: [partition] }]),
  resume: async ({ topic, partition }) => consumer.resume([{ topic, partitions: [partition] }]),
  leave: () => consumer.disconnect()
}))
