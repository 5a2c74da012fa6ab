/* The cleaner's memory of keys: key -> latest offset. Knows no Python.
 *
 *   entry, 24 bytes    uint64 hash[2]    int64 offset + 1, 0: the slot is free
 *
 * A key is known by 128 bits of SipHash-2-4, whose secret is drawn when the map is made: nobody can choose
 * two keys that are taken for one. Open addressing in Robin Hood order (an entry gives way to one that is
 * farther from home), so that a key which is not there is soon missed even when the map is 90 % full. There
 * is no removal. Memory is taken with the first entry and never grows.
 */
#ifndef PYKAFKAD_CLEANER_MAP_H
#define PYKAFKAD_CLEANER_MAP_H

#include <stddef.h>
#include <stdint.h>

#define KEY_MAP_ENTRY_BYTES 24

typedef struct {
  uint64_t high, low;
} key_hash;

typedef struct {
  key_hash hash;
  int64_t taken; /* offset + 1 */
} key_entry;

typedef struct {
  key_entry *entries; /* NULL: nothing was put yet */
  int64_t slots;
  int64_t size;
  int64_t latest_offset; /* -1: none */
  uint64_t secret[2];
} key_map;

enum { KEY_MAP_OK = 0, KEY_MAP_FULL = 1, KEY_MAP_NO_MEMORY = 2 };

/* 0 or errno: the secret is drawn. */
int key_map_begin(key_map *map, int64_t memory_bytes);
void key_map_clear(key_map *map);
void key_map_close(key_map *map);

key_hash key_map_hash(const key_map *map, const uint8_t *key, size_t size);

/* Have the hash's slot come to the cache while others are worked on. */
void key_map_expect(const key_map *map, key_hash hash);

/* -1: not there. */
int64_t key_map_get(const key_map *map, key_hash hash);

/* Also makes `offset` the latest one. */
int key_map_put(key_map *map, key_hash hash, int64_t offset);

#endif
