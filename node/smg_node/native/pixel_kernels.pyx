# cython: show_performance_hints=False
"""Pixel kernels: resampling, patches and tables over 8-bit RGB, without the interpreter's lock.

Its twin is numpy in `media/pixels`, which is used where there was no compiler and gives the same bytes. All sizes are
checked here, with the lock, before a loop runs.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport int16_t, int32_t, uint8_t, uint16_t, uint32_t


cdef extern from "pixel_loops.h" nogil:
    ctypedef struct smg_axis:
        const int32_t *starts
        const int32_t *counts
        const int16_t *weights
        Py_ssize_t taps
        int precision

    int smg_has_avx2()
    void smg_horizontal(const uint8_t *, uint8_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t, smg_axis, int)
    void smg_vertical(const uint8_t *, uint8_t *, Py_ssize_t, Py_ssize_t, smg_axis, int)
    void smg_merged(
        const uint8_t *, uint8_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, int
    )
    void smg_merged_frames(
        const uint8_t *, uint8_t *, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t
    )
    int smg_base64(const uint8_t *, Py_ssize_t, uint8_t *, int)
    void smg_wide2(const uint8_t *, const uint16_t *, uint8_t *, Py_ssize_t, Py_ssize_t)
    void smg_wide4(const uint8_t *, const uint32_t *, uint8_t *, Py_ssize_t, Py_ssize_t)


cdef smg_axis _axis(
    const int32_t[::1] starts, const int32_t[::1] counts, const int16_t[:, ::1] weights, int precision,
    Py_ssize_t samples, Py_ssize_t outputs,
) except *:
    """Return the axis as the loops take it, when no weight lies outside and no sample does."""
    cdef smg_axis axis
    cdef Py_ssize_t at
    if not (starts.shape[0] == counts.shape[0] == weights.shape[0] == outputs and outputs > 0):
        raise ValueError("weights are not those of the outputs")
    if weights.shape[1] % 4 or not 0 <= precision <= 22:
        raise ValueError("weights are not in fours, or their precision is no such")
    for at in range(outputs):
        if starts[at] < 0 or not 0 < counts[at] <= weights.shape[1] or starts[at] + counts[at] > samples:
            raise ValueError("weights go beyond the samples")
    axis.starts, axis.counts, axis.weights = &starts[0], &counts[0], &weights[0, 0]
    axis.taps, axis.precision = weights.shape[1], precision
    return axis


def has_avx2():
    """Whether the processor has AVX2; the loops are several times faster there."""
    return bool(smg_has_avx2())


def horizontal(
    const uint8_t[:, :, ::1] source, uint8_t[:, :, ::1] made, const int32_t[::1] starts, const int32_t[::1] counts,
    const int16_t[:, ::1] weights, int precision, bint avx2,
):
    """Fill `made` [height, outputs, 3] with the lines of `source` [height, width, 3], resampled."""
    cdef Py_ssize_t height = source.shape[0], width = source.shape[1], outputs = made.shape[1]
    if source.shape[2] != 3 or made.shape[2] != 3 or made.shape[0] != height:
        raise ValueError("shapes of the pictures differ")
    cdef smg_axis axis = _axis(starts, counts, weights, precision, width, outputs)
    if not height:
        return
    with nogil:
        smg_horizontal(&source[0, 0, 0], &made[0, 0, 0], height, width, outputs, axis, avx2)


def vertical(
    const uint8_t[:, :, ::1] source, uint8_t[:, :, ::1] made, const int32_t[::1] starts, const int32_t[::1] counts,
    const int16_t[:, ::1] weights, int precision, bint avx2,
):
    """Fill `made` [outputs, width, 3] with the columns of `source` [height, width, 3], resampled."""
    cdef Py_ssize_t size = source.shape[1] * source.shape[2], outputs = made.shape[0]
    if source.shape[1] != made.shape[1] or source.shape[2] != made.shape[2]:
        raise ValueError("shapes of the pictures differ")
    cdef smg_axis axis = _axis(starts, counts, weights, precision, source.shape[0], outputs)
    if not size:
        return
    with nogil:
        smg_vertical(&source[0, 0, 0], &made[0, 0, 0], size, outputs, axis, avx2)


def merged(
    const uint8_t[:, :, ::1] source, uint8_t[::1] made, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t merge,
    Py_ssize_t copies, bint avx2,
):
    """Fill `made` with the patches of `source`, each [3, copies, rows, columns], in blocks of merge by merge."""
    cdef Py_ssize_t height = source.shape[0], width = source.shape[1]
    if source.shape[2] != 3 or not 0 < rows <= height or not 0 < columns <= width or not 0 < merge <= height:
        raise ValueError("the picture is not made of such blocks")
    if height % (rows * merge) or width % (columns * merge):
        raise ValueError("the picture is not made of such blocks")
    if copies < 1 or made.shape[0] // copies != 3 * height * width or made.shape[0] % copies:
        raise ValueError("the patches are not those of the picture")
    with nogil:
        smg_merged(&source[0, 0, 0], &made[0], height, width, rows, columns, merge, copies, avx2)


def base64_decoded(str text, Py_ssize_t start, bint avx2):
    """Return what the base64 in `text` from character `start` on spells, None where it may not be exactly that."""
    cdef Py_ssize_t size, fours, padding = 0, last
    # Others would be encoded first, and are no base64.
    if start < 0 or not text.isascii():
        return None
    cdef const uint8_t *chars = <const uint8_t *>PyUnicode_AsUTF8AndSize(text, &size)
    if size - start < 4 or (size - start) % 4:
        return None
    fours, last = (size - start) // 4, size - 4
    if chars[size - 1] == b"=":
        padding = 2 if chars[size - 2] == b"=" else 1
    cdef uint8_t[4] end_text
    cdef uint8_t[3] end
    cdef Py_ssize_t at
    for at in range(4):
        end_text[at] = chars[last + at] if at < 4 - padding else b"A"
    made = PyBytes_FromStringAndSize(NULL, 3 * fours - padding)
    cdef uint8_t *bytes_made = <uint8_t *>PyBytes_AS_STRING(made)
    cdef int right
    with nogil:
        right = smg_base64(chars + start, fours - 1, bytes_made, avx2) and smg_base64(end_text, 1, end, 0)
    if not right:
        return None
    for at in range(3 - padding):
        bytes_made[3 * (fours - 1) + at] = end[at]
    return made


def merged_frames(
    const uint8_t[:, :, :, ::1] source, uint8_t[::1] made, Py_ssize_t rows, Py_ssize_t columns, Py_ssize_t merge,
):
    """Fill `made` with the patches of frames, each [3, frames, rows, columns], in blocks of merge by merge."""
    cdef Py_ssize_t steps = source.shape[0], height = source.shape[1], width = source.shape[2]
    if source.shape[3] != 3 or not 0 < rows <= height or not 0 < columns <= width or not 0 < merge <= height:
        raise ValueError("the frames are not made of such blocks")
    if height % (rows * merge) or width % (columns * merge):
        raise ValueError("the frames are not made of such blocks")
    if steps < 1 or made.shape[0] != 3 * steps * height * width:
        raise ValueError("the patches are not those of the frames")
    with nogil:
        smg_merged_frames(&source[0, 0, 0, 0], &made[0], steps, height, width, rows, columns, merge)


def widened(const uint8_t[::1] levels, const uint8_t[:, ::1] table, uint8_t[::1] made, Py_ssize_t run):
    """Fill `made` with the numbers of a table [3, 256 * 2 or 4 bytes]; the channel changes every `run` levels."""
    cdef Py_ssize_t width = table.shape[1] // 256, size = levels.shape[0]
    if table.shape[0] != 3 or table.shape[1] % 256 or width not in (2, 4):
        raise ValueError("the table has no such shape")
    if run < 1 or size % (3 * run) or made.shape[0] != width * size:
        raise ValueError("levels and numbers are not as many")
    if not size:
        return
    with nogil:
        if width == 2:
            smg_wide2(&levels[0], <const uint16_t *>&table[0, 0], &made[0], size, run)
        else:
            smg_wide4(&levels[0], <const uint32_t *>&table[0, 0], &made[0], size, run)
