// node-rdkafka (librdkafka) in transactions. Its lines are described in compat_tests/transactions/drivers/line.py.
'use strict'

const { randomUUID } = require('node:crypto')
const { promisify } = require('node:util')
const { Producer, KafkaConsumer } = require('node-rdkafka')
const { given, partition, obey } = require('../line')

const ANSWER_MS = 30000
const TAKE_MS = 30000
const PEEK_MS = 400
const POLL_MS = 20
const SOME = 100
const OFFSET_BEGINNING = -2

const common = { 'bootstrap.servers': given.bootstrap, 'reconnect.backoff.max.ms': 500 }
const ofTopics = { 'auto.offset.reset': 'earliest' }
const producers = new Map()
const consumers = new Map() // of groups, and readers

const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

const connect = client => new Promise((resolve, reject) => {
  client.on('event.error', () => {}) // librdkafka tries again by itself
  client.connect({}, error => error ? reject(error) : resolve(client))
})

/** As librdkafka asks for it: what is retriable is called again. */
async function persist (call) {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!error.isRetriable) throw error
    }
  }
}

function ask (producer, method, ...words) {
  return persist(() => promisify(producer[method]).apply(producer, words))
}

async function consumer (config) {
  const made = await connect(new KafkaConsumer({ ...common, 'enable.auto.commit': false, 'fetch.wait.max.ms': 100, ...config }, ofTopics))
  made.setDefaultConsumeTimeout(POLL_MS)
  return { client: made, read: [] }
}

async function poll (one) {
  const messages = await promisify(one.client.consume).call(one.client, SOME)
  one.read.push(...messages.map(message => message.value.toString()))
}

async function until (one, ended) {
  for (const deadline = Date.now() + TAKE_MS; !ended();) {
    if (Date.now() > deadline) throw new Error(`only ${one.read} in ${TAKE_MS} ms`)
    await poll(one)
  }
}

const commands = {
  async producer (name, transactionalId, timeout, group, topic, protocol) {
    const client = new Producer({
      ...common,
      'transactional.id': transactionalId,
      'transaction.timeout.ms': Number(timeout),
      'linger.ms': 0,
      dr_cb: true
    })
    const one = { client, consumed: [], waiting: 0, refused: undefined }
    client.on('delivery-report', error => {
      one.waiting--
      one.refused ??= error
    })
    await connect(client)
    client.setPollInterval(POLL_MS)
    await ask(client, 'initTransactions', ANSWER_MS)
    producers.set(name, one)
    if (!group) return
    const reader = await consumer({
      'group.id': group,
      'group.protocol': protocol,
      'isolation.level': 'read_committed'
    })
    reader.client.subscribe([topic])
    consumers.set(name, reader)
  },
  begin: name => ask(producers.get(name).client, 'beginTransaction'),
  async send (name, place, ...values) {
    const { topic, partition: number } = partition(place)
    const one = producers.get(name)
    one.refused = undefined
    for (const value of values) {
      one.client.produce(topic, number, Buffer.from(value))
      one.waiting++
    }
    for (const deadline = Date.now() + ANSWER_MS; one.waiting; await pause(1)) {
      one.client.poll()
      if (Date.now() > deadline) throw new Error(`${one.waiting} records were never acknowledged`)
    }
    if (!one.refused) return
    await commands.commit(name) // which says why the records were thrown away
    throw one.refused
  },
  commit: name => ask(producers.get(name).client, 'commitTransaction', ANSWER_MS),
  abort: name => ask(producers.get(name).client, 'abortTransaction', ANSWER_MS),
  async consume (name, count) {
    const one = consumers.get(name)
    await until(one, () => one.read.length >= Number(count))
    return (producers.get(name).consumed = one.read.splice(0))
  },
  async transform (name, place) {
    const { client, consumed } = producers.get(name)
    await commands.send(name, place, ...consumed.map(value => `${value}'`))
    const reader = consumers.get(name).client
    const offsets = reader.position().filter(each => each.offset !== undefined)
    await ask(client, 'sendOffsetsToTransaction', offsets, reader, ANSWER_MS)
  },
  async reader (name, isolation, place) {
    const { topic, partition: number } = partition(place)
    const one = await consumer({ 'group.id': `never joined ${randomUUID()}`, 'isolation.level': isolation })
    one.client.assign([{ topic, partition: number, offset: OFFSET_BEGINNING }])
    consumers.set(name, one)
  },
  async take (name, last) {
    const one = consumers.get(name)
    await until(one, () => one.read.includes(last))
    return one.read.splice(0, one.read.indexOf(last) + 1)
  },
  async peek (name) {
    const one = consumers.get(name)
    for (const end = Date.now() + PEEK_MS; Date.now() < end;) await poll(one)
    return one.read.splice(0)
  },
  async close (name) {
    for (const one of [consumers.get(name), producers.get(name)]) {
      if (one) await promisify(one.client.disconnect).call(one.client).catch(() => {}) // a fenced one says so again
    }
    consumers.delete(name)
    producers.delete(name)
  }
}

obey(commands)
