"""Memory calls: what the kernel and glibc do with this process's memory, on Linux.

Its twin is `process_memory`'s way through ctypes, which is used where there was no compiler. That library takes half a
megabyte of an idle node for three calls.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uintptr_t


cdef extern from *:
    """
    #include <stddef.h>
    #include <stdint.h>
    #ifdef __linux__
    #include <sys/mman.h>
    static int smg_unmap(uintptr_t start, size_t length) {
        return madvise((void *)start, length, MADV_DONTNEED);
    }
    #else
    static int smg_unmap(uintptr_t start, size_t length) { (void)start; (void)length; return -1; }
    #endif
    #ifdef __GLIBC__
    #include <malloc.h>
    static int smg_trim(void) { return malloc_trim(0); }
    static int smg_option(int name, int value) { return mallopt(name, value); }
    #else
    static int smg_trim(void) { return 0; }
    static int smg_option(int name, int value) { (void)name; (void)value; return 0; }
    #endif
    """
    int smg_trim() nogil
    int smg_option(int, int) nogil
    int smg_unmap(uintptr_t, size_t) nogil


def malloc_trim() -> bool:
    """Return what is free in the C library's heap to the system; whether anything was."""
    cdef int given
    with nogil:
        given = smg_trim()
    return given == 1


def mallopt(int name, int value) -> bool:
    """Set an option of glibc's allocator; whether it is known."""
    return smg_option(name, value) == 1


def unmap_pages(uintptr_t start, size_t length) -> bool:
    """Let go of pages of a mapped file that nobody has changed; whether the kernel did."""
    return smg_unmap(start, length) == 0
