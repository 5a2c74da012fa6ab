// The lines of a member of a group, as compat_tests/groups/drivers/line.py describes them.
'use strict'

const readline = require('node:readline')

const say = (...words) => process.stdout.write(words.join(' ') + '\n')
const text = error => String((error && error.message) || error).replaceAll('\n', ' ')

const given = Object.fromEntries(
  process.argv.slice(2).map(word => [word.slice(0, word.indexOf('=')), word.slice(word.indexOf('=') + 1)])
)

function partition (word) {
  const colon = word.lastIndexOf(':')
  return { topic: word.slice(0, colon), partition: Number(word.slice(colon + 1)) }
}

/** Prints all partitions that are owned: [{ topic, partition }, ...]. */
function owns (held) {
  say('owns', ...held.map(p => `${p.topic}:${p.partition}`).sort())
}

function record (topic, number, offset, value) {
  say('record', `${topic}:${number}`, offset, value.toString())
}

/** `commands` has an async function for each command that the client offers; they are run one after the other. */
async function serve (commands) {
  say('ready')
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [name, where, offset] = line.split(' ')
    try {
      const found = await commands[name](where && partition(where), offset)
      say('ok', ...(found === undefined ? [] : [found]))
    } catch (error) {
      say('error', text(error))
    }
    if (name === 'leave') break
  }
  process.exit(0) // also if the test has ended
}

/**
 * As compat_tests/transactions/drivers/line.py has it: each command finds values, or fails with an error that may have a
 * type; the end of the input is that of the test.
 */
async function obey (commands) {
  say('ready')
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...words] = line.split(' ')
    try {
      say('ok', ...(await commands[command](...words) ?? []))
    } catch (error) {
      say('error', error.type ?? '', text(error))
    }
  }
  process.exit(0)
}

module.exports = { given, say, text, partition, owns, record, serve, obey }
