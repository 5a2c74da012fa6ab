/* See crc32c.h. Three implementations behind one pointer:
 *
 *   portable  slicing by eight: eight tables of 256, eight bytes a step
 *   sse4.2    the crc32 instruction on x86-64
 *   arm64     the crc32c instructions
 *
 * The instructions take three cycles but one can start every cycle, so large inputs are cut into three
 * streams that run side by side; their states are then joined by shift tables: table look-ups that do what
 * feeding `stride` zero bytes would do to a state (a linear map, so one look-up a byte of the state).
 */
#include "crc32c.h"

#include <string.h>

#if defined(__x86_64__) && !defined(CRC32C_PORTABLE)
#include <nmmintrin.h>
#define CRC_TARGET __attribute__((target("sse4.2")))
#define CRC_WORD(state, word) ((uint32_t)_mm_crc32_u64((state), (word)))
#define CRC_BYTE(state, byte) (_mm_crc32_u8((state), (byte)))
#define HARDWARE_NAME "sse4.2"
#elif defined(__aarch64__) && !defined(CRC32C_PORTABLE)
#if defined(__linux__)
#include <sys/auxv.h>
#endif
#if defined(__clang__)
#define CRC_TARGET __attribute__((target("crc")))
#else
#define CRC_TARGET __attribute__((target("+crc")))
#endif
#if defined(__clang__)
#define CRC_WORD(state, word) (__builtin_arm_crc32cd((state), (word)))
#define CRC_BYTE(state, byte) (__builtin_arm_crc32cb((state), (byte)))
#else
#define CRC_WORD(state, word) (__builtin_aarch64_crc32cx((state), (word)))
#define CRC_BYTE(state, byte) (__builtin_aarch64_crc32cb((state), (byte)))
#endif
#define HARDWARE_NAME "arm64"
#endif

#define POLYNOMIAL 0x82f63b78u
#define LONG_STRIDE 2048 /* bytes a stream takes in one step of the three-stream loop */
#define SHORT_STRIDE 128

static uint32_t slices[8][256];

static void make_slices(void) {
  for (uint32_t byte = 0; byte < 256; byte++) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; bit++)
      state = (state >> 1) ^ (POLYNOMIAL & (0u - (state & 1)));
    slices[0][byte] = state;
  }
  for (uint32_t byte = 0; byte < 256; byte++)
    for (int slice = 1; slice < 8; slice++)
      slices[slice][byte] = (slices[slice - 1][byte] >> 8) ^ slices[0][slices[slice - 1][byte] & 0xff];
}

static uint32_t portable(uint32_t seed, const uint8_t *data, size_t size) {
  uint32_t state = ~seed;
  for (; size >= 8; data += 8, size -= 8) {
    uint32_t low = state ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                            (uint32_t)data[3] << 24);
    state = slices[7][low & 0xff] ^ slices[6][low >> 8 & 0xff] ^ slices[5][low >> 16 & 0xff] ^
            slices[4][low >> 24] ^ slices[3][data[4]] ^ slices[2][data[5]] ^ slices[1][data[6]] ^
            slices[0][data[7]];
  }
  for (; size; data++, size--)
    state = (state >> 8) ^ slices[0][(state ^ *data) & 0xff];
  return ~state;
}

#ifdef HARDWARE_NAME
static uint32_t long_shift[4][256];
static uint32_t short_shift[4][256];

static inline uint64_t load_word(const uint8_t *data) {
  uint64_t word;
  memcpy(&word, data, sizeof word);
  return word; /* both machines are little-endian, as the instructions expect */
}

/* table[i][b]: what byte b at place i of a state becomes after `stride` zero bytes */
CRC_TARGET static void make_shift(uint32_t table[4][256], size_t stride) {
  uint32_t basis[32];
  for (int bit = 0; bit < 32; bit++) {
    uint32_t state = 1u << bit;
    for (size_t done = 0; done < stride; done += 8)
      state = CRC_WORD(state, 0);
    basis[bit] = state;
  }
  for (int place = 0; place < 4; place++)
    for (int byte = 0; byte < 256; byte++) {
      table[place][byte] = 0;
      for (int bit = 0; bit < 8; bit++)
        if (byte >> bit & 1)
          table[place][byte] ^= basis[place * 8 + bit];
    }
}

static inline uint32_t shifted(uint32_t table[4][256], uint32_t state) {
  return table[0][state & 0xff] ^ table[1][state >> 8 & 0xff] ^ table[2][state >> 16 & 0xff] ^
         table[3][state >> 24];
}

CRC_TARGET static inline uint32_t three_streams(uint32_t state, const uint8_t *data, size_t stride,
                                                uint32_t table[4][256]) {
  uint32_t second = 0, third = 0;
  for (const uint8_t *end = data + stride; data < end; data += 8) {
    state = CRC_WORD(state, load_word(data));
    second = CRC_WORD(second, load_word(data + stride));
    third = CRC_WORD(third, load_word(data + 2 * stride));
  }
  return shifted(table, shifted(table, state) ^ second) ^ third;
}

CRC_TARGET static uint32_t hardware(uint32_t seed, const uint8_t *data, size_t size) {
  uint32_t state = ~seed;
  for (; size >= 3 * LONG_STRIDE; data += 3 * LONG_STRIDE, size -= 3 * LONG_STRIDE)
    state = three_streams(state, data, LONG_STRIDE, long_shift);
  for (; size >= 3 * SHORT_STRIDE; data += 3 * SHORT_STRIDE, size -= 3 * SHORT_STRIDE)
    state = three_streams(state, data, SHORT_STRIDE, short_shift);
  for (; size >= 8; data += 8, size -= 8)
    state = CRC_WORD(state, load_word(data));
  for (; size; data++, size--)
    state = CRC_BYTE(state, *data);
  return ~state;
}

static int hardware_present(void) {
#if defined(__x86_64__) && !defined(CRC32C_PORTABLE)
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") != 0;
#elif defined(__linux__)
  return (getauxval(AT_HWCAP) & (1ul << 7)) != 0; /* HWCAP_CRC32 */
#elif defined(__APPLE__)
  return 1; /* every arm64 Mac has them */
#else
  return 0;
#endif
}
#endif

typedef uint32_t (*implementation)(uint32_t seed, const uint8_t *data, size_t size);

static const struct {
  const char *name;
  implementation run;
} paths[] = {
    {"portable", portable},
#ifdef HARDWARE_NAME
    {HARDWARE_NAME, hardware},
#endif
};

#define PATH_COUNT ((int)(sizeof paths / sizeof paths[0]))

static int chosen = 0;

__attribute__((constructor)) static void choose(void) {
  make_slices();
#ifdef HARDWARE_NAME
  if (hardware_present()) {
    make_shift(long_shift, LONG_STRIDE);
    make_shift(short_shift, SHORT_STRIDE);
    chosen = 1;
  }
#endif
}

uint32_t crc32c(uint32_t seed, const uint8_t *data, size_t size) {
  return paths[chosen].run(seed, data, size);
}

const char *crc32c_path_name(int path) { return path >= 0 && path < PATH_COUNT ? paths[path].name : NULL; }

int crc32c_path_available(int path) { return path == 0 || (path == 1 && chosen == 1); }

uint32_t crc32c_by_path(int path, uint32_t seed, const uint8_t *data, size_t size) {
  return paths[path].run(seed, data, size);
}

int crc32c_path_chosen(void) { return chosen; }
