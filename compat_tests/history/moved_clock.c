/* A wall clock that a test moves while a program runs: loaded before libc (LD_PRELOAD). MOVED_CLOCK names a file of eight
 * bytes: the nanoseconds that are added to CLOCK_REALTIME. The monotonic clock stays as it is, as on a machine whose
 * administrator, or NTP, sets the time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_A_SECOND 1000000000LL

static const volatile int64_t *moved_by;

__attribute__((constructor)) static void open_clock(void) {
    const char *path = getenv("MOVED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *moved_by, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED)
        moved_by = mapped;
    close(file);
}

int clock_gettime(clockid_t id, struct timespec *now) {
    int status = (int)syscall(SYS_clock_gettime, id, now);
    if (status || !moved_by || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
        return status;
    int64_t ns = now->tv_sec * NS_A_SECOND + now->tv_nsec + *moved_by;
    now->tv_sec = ns / NS_A_SECOND;
    now->tv_nsec = ns % NS_A_SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int status = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return status;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}
