/* See cleaner_map.h. */
#include "cleaner_map.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define LARGE_BYTES (2 * 1024 * 1024) /* a huge page: what is worth asking for them */

static size_t map_bytes(const key_map *map) { return (size_t)map->slots * sizeof(key_entry); }

int key_map_begin(key_map *map, int64_t memory_bytes) {
  memset(map, 0, sizeof *map);
  map->slots = memory_bytes / KEY_MAP_ENTRY_BYTES;
  map->latest_offset = -1;
  return getentropy(map->secret, sizeof map->secret) == 0 ? 0 : errno;
}

void key_map_close(key_map *map) {
  if (map->entries)
    munmap(map->entries, map_bytes(map));
  map->entries = NULL;
  map->size = 0;
  map->latest_offset = -1;
}

void key_map_clear(key_map *map) {
  if (map->size && map_bytes(map) < LARGE_BYTES)
    memset(map->entries, 0, map_bytes(map));
  else if (map->size) /* pages that were never touched again need no zeroes written */
    key_map_close(map);
  map->size = 0;
  map->latest_offset = -1;
}

static int take_memory(key_map *map) {
  void *memory = mmap(NULL, map_bytes(map), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return KEY_MAP_NO_MEMORY;
#ifdef MADV_HUGEPAGE
  if (map_bytes(map) >= LARGE_BYTES)
    (void)madvise(memory, map_bytes(map), MADV_HUGEPAGE);
#endif
  map->entries = memory;
  return KEY_MAP_OK;
}

/* ---- SipHash-2-4 with 128 bits of result ---- */

static inline uint64_t rotate(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

static inline uint64_t load_little(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

static inline void sip_round(uint64_t v[4]) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = rotate(v[1], 13) ^ v[0];
  v[3] = rotate(v[3], 16) ^ v[2];
  v[0] = rotate(v[0], 32) + v[3];
  v[2] += v[1];
  v[3] = rotate(v[3], 21) ^ v[0];
  v[1] = rotate(v[1], 17) ^ v[2];
  v[2] = rotate(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word) {
  v[3] ^= word;
  sip_round(v);
  sip_round(v);
  v[0] ^= word;
}

static inline uint64_t sip_end(uint64_t v[4]) {
  for (int turn = 0; turn < 4; turn++)
    sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

key_hash key_map_hash(const key_map *map, const uint8_t *key, size_t size) {
  uint64_t v[4] = {
      map->secret[0] ^ 0x736f6d6570736575u,
      map->secret[1] ^ 0x646f72616e646f6du ^ 0xee,
      map->secret[0] ^ 0x6c7967656e657261u,
      map->secret[1] ^ 0x7465646279746573u,
  };
  uint64_t last = (uint64_t)size << 56;
  for (; size >= 8; size -= 8, key += 8)
    sip_word(v, load_little(key));
  for (size_t place = 0; place < size; place++)
    last |= (uint64_t)key[place] << (8 * place);
  sip_word(v, last);
  key_hash hash;
  v[2] ^= 0xee;
  hash.high = sip_end(v);
  v[1] ^= 0xdd;
  hash.low = sip_end(v);
  return hash;
}

/* ---- the table ---- */

static inline int64_t home_of(const key_map *map, key_hash hash) {
  return (int64_t)((unsigned __int128)hash.high * (uint64_t)map->slots >> 64);
}

static inline int64_t next_slot(const key_map *map, int64_t slot) {
  return slot + 1 == map->slots ? 0 : slot + 1;
}

static inline int64_t distance(const key_map *map, int64_t slot) {
  int64_t away = slot - home_of(map, map->entries[slot].hash);
  return away < 0 ? away + map->slots : away;
}

/* The slot that has the key, or -1 and in `stop` the one it would have to take. */
static int64_t find(const key_map *map, key_hash hash, int64_t *stop) {
  int64_t slot = home_of(map, hash);
  for (int64_t away = 0; away < map->slots; away++, slot = next_slot(map, slot)) {
    const key_entry *entry = &map->entries[slot];
    if (entry->hash.high == hash.high && entry->hash.low == hash.low && entry->taken)
      return slot;
    if (!entry->taken || distance(map, slot) < away)
      break;
  }
  *stop = slot;
  return -1;
}

void key_map_expect(const key_map *map, key_hash hash) {
  if (map->entries)
    __builtin_prefetch(&map->entries[home_of(map, hash)]);
}

int64_t key_map_get(const key_map *map, key_hash hash) {
  int64_t stop;
  int64_t slot = map->entries ? find(map, hash, &stop) : -1;
  return slot < 0 ? -1 : map->entries[slot].taken - 1;
}

/* Everything from `slot` to the next free one moves on by one. */
static void make_room(key_map *map, int64_t slot) {
  key_entry moved = map->entries[slot];
  while (moved.taken) {
    slot = next_slot(map, slot);
    key_entry other = map->entries[slot];
    map->entries[slot] = moved;
    moved = other;
  }
}

int key_map_put(key_map *map, key_hash hash, int64_t offset) {
  int64_t stop = 0;
  if (!map->entries && (map->slots < 1 || take_memory(map)))
    return map->slots < 1 ? KEY_MAP_FULL : KEY_MAP_NO_MEMORY;
  int64_t slot = find(map, hash, &stop);
  if (slot < 0 && map->size == map->slots)
    return KEY_MAP_FULL;
  if (slot < 0) {
    make_room(map, stop);
    map->entries[stop].hash = hash;
    map->size++;
    slot = stop;
  }
  map->entries[slot].taken = offset + 1;
  map->latest_offset = offset;
  return KEY_MAP_OK;
}
