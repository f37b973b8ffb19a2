/* A wall clock that is wrong, and a disk that is slow, for one program: loaded before its libraries.
 *
 * Both numbers are read from a small mapped file, so that they can be changed while the program runs: by how many
 * nanoseconds the wall clock is ahead, and how many microseconds more a write or a sync below a folder takes. Where a
 * number is 0 nothing is done but to read it. Clocks that never jump are left alone, and whoever sleeps until a moment
 * of the wall clock sleeps until that moment of the wrong one.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL
/* No monotonic clock is so late: what is beyond it is a moment of the wall clock. */
#define WALL_FROM_S 1000000000LL
#define EXPORTED __attribute__((visibility("default")))

struct numbers {
    _Atomic int64_t ahead_ns;
    _Atomic int64_t delay_us;
};

static struct numbers nothing;
static struct numbers *numbers = &nothing;
static char folder[4096];
static size_t folder_length;

static int (*next_clock_gettime)(clockid_t, struct timespec *);
static int (*next_cond_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*next_sem_timedwait)(sem_t *, const struct timespec *);
static int (*next_mutex_timedlock)(pthread_mutex_t *, const struct timespec *);
static ssize_t (*next_write)(int, const void *, size_t);
static ssize_t (*next_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*next_writev)(int, const struct iovec *, int);
static int (*next_fsync)(int);
static int (*next_fdatasync)(int);
static long (*next_syscall)(long, ...);

static void *following(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        fprintf(stderr, "skew: there is no %s\n", name);
        abort();
    }
    return found;
}

static void find_all(void) {
    /* The name alone finds one of another age, which takes other condition variables. */
    next_cond_timedwait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (next_cond_timedwait == NULL)
        next_cond_timedwait = following("pthread_cond_timedwait");
    next_sem_timedwait = following("sem_timedwait");
    next_mutex_timedlock = following("pthread_mutex_timedlock");
    next_write = following("write");
    next_pwrite = following("pwrite64");
    next_writev = following("writev");
    next_fsync = following("fsync");
    next_fdatasync = following("fdatasync");
    next_syscall = following("syscall");
    next_clock_gettime = following("clock_gettime");
}

/* What another library calls while it is loaded may come before `begin`. */
static inline void be_ready(void) {
    if (__builtin_expect(next_clock_gettime == NULL, 0))
        find_all();
}

__attribute__((constructor)) static void begin(void) {
    be_ready();
    const char *below = getenv("SKEW_FOLDER");
    if (below != NULL && realpath(below, folder) != NULL)
        folder_length = strlen(folder);
    const char *path = getenv("SKEW_NUMBERS");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    struct stat size;
    if (fstat(file, &size) == 0 && size.st_size >= (off_t)sizeof(struct numbers)) {
        void *mapped = mmap(NULL, sizeof(struct numbers), PROT_READ, MAP_SHARED, file, 0);
        if (mapped != MAP_FAILED)
            numbers = mapped;
    }
    close(file);
}

/* ── The clock ─────────────────────────────────────────────────────────── */

static int64_t ahead_ns(void) { return atomic_load_explicit(&numbers->ahead_ns, memory_order_relaxed); }

static void move(struct timespec *at, int64_t by_ns) {
    int64_t ns = (int64_t)at->tv_sec * SECOND_NS + at->tv_nsec + by_ns;
    at->tv_sec = ns / SECOND_NS;
    at->tv_nsec = ns % SECOND_NS;
}

/* Return the moment of the right clock that the wrong one means; one of a clock that never jumps stays. */
static const struct timespec *right(const struct timespec *at, struct timespec *moved) {
    int64_t ahead = ahead_ns();
    if (ahead == 0 || at == NULL || at->tv_sec < WALL_FROM_S)
        return at;
    *moved = *at;
    move(moved, -ahead);
    return moved;
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *at) {
    be_ready();
    int result = next_clock_gettime(clock, at);
    int64_t ahead = ahead_ns();
    if (ahead != 0 && result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        move(at, ahead);
    return result;
}

EXPORTED int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

EXPORTED time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL)
        *at = now.tv_sec;
    return now.tv_sec;
}

EXPORTED int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until) {
    be_ready();
    struct timespec moved;
    return next_cond_timedwait(cond, mutex, right(until, &moved));
}

EXPORTED int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
    be_ready();
    struct timespec moved;
    return next_sem_timedwait(semaphore, right(until, &moved));
}

EXPORTED int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
    be_ready();
    struct timespec moved;
    return next_mutex_timedlock(mutex, right(until, &moved));
}

EXPORTED long syscall(long number, ...) {
    be_ready();
    long given[6];
    va_list list;
    va_start(list, number);
    for (int at = 0; at < 6; at++)
        given[at] = va_arg(list, long);
    va_end(list);
    struct timespec moved;
    /* Only a futex that waits by the wall clock is told a moment of it. */
    if (number == SYS_futex && (given[1] & FUTEX_CLOCK_REALTIME))
        given[3] = (long)right((const struct timespec *)given[3], &moved);
    return next_syscall(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}

/* ── The disk ──────────────────────────────────────────────────────────── */

static void wait_for_disk(int file) {
    int64_t delay_us = atomic_load_explicit(&numbers->delay_us, memory_order_relaxed);
    if (delay_us <= 0 || folder_length == 0)
        return;
    int was = errno;
    struct stat kind;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (fstat(file, &kind) == 0 && S_ISREG(kind.st_mode)) {
        ssize_t length = readlink(link, path, sizeof path);
        if (length > (ssize_t)folder_length && strncmp(path, folder, folder_length) == 0 && path[folder_length] == '/') {
            struct timespec left = {delay_us / 1000000, delay_us % 1000000 * 1000};
            while (nanosleep(&left, &left) != 0 && errno == EINTR)
                continue;
        }
    }
    errno = was;
}

EXPORTED ssize_t write(int file, const void *content, size_t size) {
    be_ready();
    wait_for_disk(file);
    return next_write(file, content, size);
}

EXPORTED ssize_t pwrite64(int file, const void *content, size_t size, off_t at) {
    be_ready();
    wait_for_disk(file);
    return next_pwrite(file, content, size, at);
}

EXPORTED ssize_t pwrite(int file, const void *content, size_t size, off_t at) {
    return pwrite64(file, content, size, at);
}

EXPORTED ssize_t writev(int file, const struct iovec *parts, int count) {
    be_ready();
    wait_for_disk(file);
    return next_writev(file, parts, count);
}

EXPORTED int fsync(int file) {
    be_ready();
    wait_for_disk(file);
    return next_fsync(file);
}

EXPORTED int fdatasync(int file) {
    be_ready();
    wait_for_disk(file);
    return next_fdatasync(file);
}
