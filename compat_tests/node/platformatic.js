// @platformatic/kafka as a member, of either protocol: no seek and no pause of one partition.
// It does not report rebalances of the consumer protocol, so its partitions are polled.
'use strict'

const { Consumer } = require('@platformatic/kafka')
const { given, say, text, owns, record, serve } = require('./line')

const LOOK_MS = 20

const consumer = new Consumer({
  clientId: given.client_id,
  bootstrapBrokers: [given.bootstrap],
  groupId: given.group,
  autocommit: false,
  maxWaitTime: 100,
  retries: 100, // else a stream ends for good if the broker is down for a few seconds
  retryDelay: 200,
  ...(given.instance ? { groupInstanceId: given.instance } : {}),
  rebalanceTimeout: 60000, // not less than its default session timeout
  ...(given.protocol === 'consumer'
    ? { groupProtocol: 'consumer', groupRemoteAssignor: given.assignor }
    : { sessionTimeout: Number(given.session_ms), heartbeatInterval: Number(given.heartbeat_ms) })
})
const heads = new Map()
let told = ''
let stream

function held () {
  return (consumer.assignments ?? []).flatMap(({ topic, partitions }) =>
    partitions.map(partition => ({ topic, partition })))
}

function look () {
  const now = JSON.stringify(held())
  if (now !== told) owns(held())
  told = now
}

async function join () {
  stream = await consumer.consume({ topics: given.topics.split(','), mode: 'committed', fallbackMode: 'earliest' })
  stream.on('data', message => {
    heads.set(`${message.topic}:${message.partition}`, message.offset + 1n)
    record(message.topic, message.partition, message.offset, message.value)
  })
  stream.on('error', error => say('fatal', text(error)))
  setInterval(look, LOOK_MS)
}

const offsetOf = (p, offset) => ({ topic: p.topic, partition: p.partition, offset: BigInt(offset), leaderEpoch: -1 })

async function commit (where, offset) {
  const read = held().filter(p => heads.has(`${p.topic}:${p.partition}`))
  const offsets = where
    ? [offsetOf(where, offset)]
    : read.map(p => offsetOf(p, heads.get(`${p.topic}:${p.partition}`)))
  await consumer.commit({ offsets })
}

async function committed ({ topic, partition }) {
  const found = await consumer.listCommittedOffsets({ topics: [{ topic, partitions: [partition] }] })
  const offset = found.get(topic)[partition]
  return offset < 0n ? '-' : offset
}

async function leave () {
  await consumer.close(true)
}

consumer.on('error', error => say('fatal', text(error)))
consumer.metadata({ topics: given.topics.split(',') }).then(() => serve({ join, commit, committed, leave }))
