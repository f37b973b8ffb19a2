/* Inner loops of resampling 8-bit RGB: plain C, and AVX2 where the processor that runs it has that.

   Sums of weighted samples are exact integers, so every form gives the same bytes. Weights are 16 bits in lines of `taps`
   values, a multiple of four, with zeros behind the last that counts. */

#ifndef SMG_PIXEL_LOOPS_H
#define SMG_PIXEL_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define SMG_AVX2 1
#include <immintrin.h>
#define SMG_FOR_AVX2 __attribute__((target("avx2")))
#endif

typedef struct {
    const int32_t *starts;
    const int32_t *counts;
    const int16_t *weights;
    ptrdiff_t taps;
    int precision;
} smg_axis;

static inline uint8_t smg_level(int32_t total, int precision) {
    total >>= precision;
    return (uint8_t)(total < 0 ? 0 : total > 255 ? 255 : total);
}

/* Outputs `from` to `to` of one line of RGB. */
static void smg_line(const uint8_t *source, uint8_t *made, ptrdiff_t from, ptrdiff_t to, smg_axis axis) {
    const int32_t half = 1 << axis.precision >> 1;
    for (ptrdiff_t place = from; place < to; place++) {
        const uint8_t *sample = source + 3 * (ptrdiff_t)axis.starts[place];
        const int16_t *weight = axis.weights + place * axis.taps;
        int32_t red = half, green = half, blue = half;
        for (int32_t tap = 0; tap < axis.counts[place]; tap++, sample += 3) {
            red += weight[tap] * sample[0];
            green += weight[tap] * sample[1];
            blue += weight[tap] * sample[2];
        }
        made[3 * place] = smg_level(red, axis.precision);
        made[3 * place + 1] = smg_level(green, axis.precision);
        made[3 * place + 2] = smg_level(blue, axis.precision);
    }
}

/* One output line of `size` bytes from the lines of `source`, `stride` bytes apart, that begin with the first that counts;
   from byte `from` on. */
static void smg_column_part(
    const uint8_t *source, uint8_t *made, ptrdiff_t from, ptrdiff_t size, ptrdiff_t stride, ptrdiff_t output, smg_axis axis
) {
    const int16_t *weight = axis.weights + output * axis.taps;
    const int32_t half = 1 << axis.precision >> 1, count = axis.counts[output];
    int32_t total[256];
    for (; from < size; from += 256) {
        const ptrdiff_t part = size - from < 256 ? size - from : 256;
        for (ptrdiff_t at = 0; at < part; at++) total[at] = half;
        for (int32_t tap = 0; tap < count; tap++) {
            const uint8_t *line = source + tap * stride + from;
            const int32_t factor = weight[tap];
            for (ptrdiff_t at = 0; at < part; at++) total[at] += factor * line[at];
        }
        for (ptrdiff_t at = 0; at < part; at++) made[from + at] = smg_level(total[at], axis.precision);
    }
}

#ifdef SMG_AVX2

static int smg_has_avx2(void) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") != 0;
}

/* Four lines at once, four taps a step: a load of 16 bytes has four samples of RGB, which a shuffle makes pairs of 16
   bits, two taps in each half, for one multiplication that adds pairs. Reads up to `3 * (count rounded up to 4) + 4` bytes
   from a start: the caller says how many outputs may do so. */
SMG_FOR_AVX2 static void smg_four_lines(
    const uint8_t *source, ptrdiff_t stride, uint8_t *made, ptrdiff_t made_stride, ptrdiff_t outputs, ptrdiff_t safe,
    smg_axis axis
) {
    const __m256i pairs = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
    const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m128i half = _mm_set1_epi32(1 << axis.precision >> 1);
    const __m128i shift = _mm_cvtsi32_si128(axis.precision);
    for (ptrdiff_t place = 0; place < safe; place++) {
        const uint8_t *sample = source + 3 * (ptrdiff_t)axis.starts[place];
        const int16_t *weight = axis.weights + place * axis.taps;
        __m256i total[4];
        for (int line = 0; line < 4; line++) total[line] = _mm256_setzero_si256();
        for (int32_t tap = 0; tap < axis.counts[place]; tap += 4, sample += 12) {
            const __m128i four = _mm_loadl_epi64((const __m128i *)(weight + tap));
            const __m256i factors = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(four), spread);
#pragma GCC unroll 4
            for (int line = 0; line < 4; line++) {
                const __m128i bytes = _mm_loadu_si128((const __m128i *)(sample + line * stride));
                const __m256i samples = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), pairs);
                total[line] = _mm256_add_epi32(total[line], _mm256_madd_epi16(samples, factors));
            }
        }
        __m128i sum[4];
        for (int line = 0; line < 4; line++) {
            const __m128i upper = _mm256_extracti128_si256(total[line], 1);
            const __m128i both = _mm_add_epi32(_mm256_castsi256_si128(total[line]), upper);
            sum[line] = _mm_sra_epi32(_mm_add_epi32(both, half), shift);
        }
        const __m128i first = _mm_packs_epi32(sum[0], sum[1]), second = _mm_packs_epi32(sum[2], sum[3]);
        uint32_t levels[4];
        _mm_storeu_si128((__m128i *)levels, _mm_packus_epi16(first, second));
        const size_t width = place + 1 < outputs ? 4 : 3;
        for (int line = 0; line < 4; line++) {
            uint8_t *at = made + line * made_stride + 3 * place;
            /* The fourth byte is the next output's, which is written after this one. */
            if (width == 4) memcpy(at, &levels[line], 4);
            else memcpy(at, &levels[line], 3);
        }
    }
    for (int line = 0; line < 4; line++)
        smg_line(source + line * stride, made + line * made_stride, safe, outputs, axis);
}

/* As `smg_column_part`, 32 bytes at a time and two taps a step; what is left over is the other's. */
SMG_FOR_AVX2 static void smg_column_avx2(
    const uint8_t *source, uint8_t *made, ptrdiff_t size, ptrdiff_t stride, ptrdiff_t output, smg_axis axis
) {
    const int16_t *weight = axis.weights + output * axis.taps;
    const int32_t count = axis.counts[output];
    const __m256i half = _mm256_set1_epi32(1 << axis.precision >> 1);
    const __m128i shift = _mm_cvtsi32_si128(axis.precision);
    ptrdiff_t from = 0;
    for (; from + 16 <= size; from += 16) {
        __m256i low = half, high = half;
        for (int32_t tap = 0; tap < count; tap += 2) {
            const uint8_t *line = source + tap * stride + from;
            const __m128i one = _mm_loadu_si128((const __m128i *)line);
            /* Behind the last tap the weight is zero, and the line is read twice. */
            const __m128i two = _mm_loadu_si128((const __m128i *)(tap + 1 < count ? line + stride : line));
            const uint32_t both = (uint16_t)weight[tap] | (uint32_t)(uint16_t)weight[tap + 1] << 16;
            const __m256i factors = _mm256_set1_epi32((int32_t)both);
            const __m256i near = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(one, two));
            const __m256i far = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(one, two));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(near, factors));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(far, factors));
        }
        const __m256i words = _mm256_packs_epi32(_mm256_sra_epi32(low, shift), _mm256_sra_epi32(high, shift));
        const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
        const __m128i levels = _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
        _mm_storeu_si128((__m128i *)(made + from), levels);
    }
    smg_column_part(source, made, from, size, stride, output, axis);
}

#else

static int smg_has_avx2(void) { return 0; }

#endif

/* All lines of RGB, from `width` to `outputs` samples each. */
static void smg_horizontal(
    const uint8_t *source, uint8_t *made, ptrdiff_t height, ptrdiff_t width, ptrdiff_t outputs, smg_axis axis, int avx2
) {
    ptrdiff_t line = 0;
#ifdef SMG_AVX2
    for (; avx2 && line + 4 <= height; line += 4) {
        const ptrdiff_t room = 3 * width * (height - line - 3);
        ptrdiff_t safe = outputs;
        /* Only near the end of the picture can a step of four taps, or the four bytes behind it, lie outside. */
        if (room < 3 * (width + 3) + 4)
            for (safe = 0; safe < outputs; safe++)
                if (3 * ((ptrdiff_t)axis.starts[safe] + ((axis.counts[safe] + 3) & ~3)) + 4 > room) break;
        smg_four_lines(
            source + 3 * width * line, 3 * width, made + 3 * outputs * line, 3 * outputs, outputs, safe, axis);
    }
#endif
    for (; line < height; line++) smg_line(source + 3 * width * line, made + 3 * outputs * line, 0, outputs, axis);
}

/* All outputs of `size` bytes each, from lines of as many. */
static void smg_vertical(
    const uint8_t *source, uint8_t *made, ptrdiff_t size, ptrdiff_t outputs, smg_axis axis, int avx2
) {
    for (ptrdiff_t output = 0; output < outputs; output++) {
        const uint8_t *first = source + size * (ptrdiff_t)axis.starts[output];
#ifdef SMG_AVX2
        if (avx2) {
            smg_column_avx2(first, made + size * output, size, size, output, axis);
            continue;
        }
#endif
        smg_column_part(first, made + size * output, 0, size, size, output, axis);
    }
}

/* The three channels of a line of `columns` pixels, apart. */
static inline void smg_split_part(
    const uint8_t *sample, uint8_t *red, uint8_t *green, uint8_t *blue, ptrdiff_t from, ptrdiff_t columns
) {
    for (ptrdiff_t x = from; x < columns; x++) {
        red[x] = sample[3 * x];
        green[x] = sample[3 * x + 1];
        blue[x] = sample[3 * x + 2];
    }
}

#ifdef SMG_AVX2
/* The same, sixteen pixels at once: each channel is picked out of the 48 bytes that they have. */
SMG_FOR_AVX2 static void smg_split(
    const uint8_t *sample, uint8_t *red, uint8_t *green, uint8_t *blue, ptrdiff_t columns
) {
    const __m128i red_low = _mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i red_middle = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1);
    const __m128i red_high = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13);
    const __m128i green_low = _mm_setr_epi8(1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i green_middle = _mm_setr_epi8(-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1);
    const __m128i green_high = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14);
    const __m128i blue_low = _mm_setr_epi8(2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    const __m128i blue_middle = _mm_setr_epi8(-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1);
    const __m128i blue_high = _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15);
    ptrdiff_t x = 0;
    for (; x + 16 <= columns; x += 16) {
        const __m128i low = _mm_loadu_si128((const __m128i *)(sample + 3 * x));
        const __m128i middle = _mm_loadu_si128((const __m128i *)(sample + 3 * x + 16));
        const __m128i high = _mm_loadu_si128((const __m128i *)(sample + 3 * x + 32));
#define SMG_PICKED(channel) \
    _mm_or_si128( \
        _mm_shuffle_epi8(low, channel##_low), \
        _mm_or_si128(_mm_shuffle_epi8(middle, channel##_middle), _mm_shuffle_epi8(high, channel##_high)) \
    )
        _mm_storeu_si128((__m128i *)(red + x), SMG_PICKED(red));
        _mm_storeu_si128((__m128i *)(green + x), SMG_PICKED(green));
        _mm_storeu_si128((__m128i *)(blue + x), SMG_PICKED(blue));
#undef SMG_PICKED
    }
    smg_split_part(sample, red, green, blue, x, columns);
}
#endif

/* Patches of `rows` by `columns` in the order of blocks of `merge` by `merge`, each as channel, copy, y, x. */
static void smg_merged(
    const uint8_t *source, uint8_t *made, ptrdiff_t height, ptrdiff_t width, ptrdiff_t rows, ptrdiff_t columns,
    ptrdiff_t merge, ptrdiff_t copies, int avx2
) {
    const ptrdiff_t plane = rows * columns;
    (void)avx2;
    for (ptrdiff_t top = 0; top < height; top += rows * merge)
        for (ptrdiff_t left = 0; left < width; left += columns * merge)
            for (ptrdiff_t inner = 0; inner < merge * merge; inner++) {
                const ptrdiff_t row = top + inner / merge * rows, column = left + inner % merge * columns;
                for (ptrdiff_t y = 0; y < rows; y++) {
                    const uint8_t *sample = source + 3 * ((row + y) * width + column);
                    uint8_t *red = made + y * columns, *green = red + copies * plane, *blue = green + copies * plane;
#ifdef SMG_AVX2
                    if (avx2) {
                        smg_split(sample, red, green, blue, columns);
                        continue;
                    }
#endif
                    smg_split_part(sample, red, green, blue, 0, columns);
                }
                for (ptrdiff_t channel = 0; channel < 3; channel++, made += copies * plane)
                    for (ptrdiff_t copy = 1; copy < copies; copy++)
                        memcpy(made + copy * plane, made, (size_t)plane);
            }
}

/* Patches of `steps` frames that stand one behind the other, as channel, frame, y, x: the order of smg_merged. */
static void smg_merged_frames(
    const uint8_t *source, uint8_t *made, ptrdiff_t steps, ptrdiff_t height, ptrdiff_t width, ptrdiff_t rows,
    ptrdiff_t columns, ptrdiff_t merge
) {
    const ptrdiff_t plane = rows * columns, frame = 3 * height * width;
    for (ptrdiff_t top = 0; top < height; top += rows * merge)
        for (ptrdiff_t left = 0; left < width; left += columns * merge)
            for (ptrdiff_t inner = 0; inner < merge * merge; inner++, made += 3 * steps * plane) {
                const ptrdiff_t row = top + inner / merge * rows, column = left + inner % merge * columns;
                for (ptrdiff_t step = 0; step < steps; step++)
                    for (ptrdiff_t y = 0; y < rows; y++) {
                        const uint8_t *sample = source + step * frame + 3 * ((row + y) * width + column);
                        uint8_t *red = made + step * plane + y * columns;
                        uint8_t *green = red + steps * plane, *blue = green + steps * plane;
                        for (ptrdiff_t x = 0; x < columns; x++) {
                            red[x] = sample[3 * x];
                            green[x] = sample[3 * x + 1];
                            blue[x] = sample[3 * x + 2];
                        }
                    }
            }
}

/* The six bits that each character of base64 stands for, and -1 for what is none. */
static const int8_t smg_six_bits[256] = {
#define SMG_NONE16 -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1
    SMG_NONE16, SMG_NONE16,
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 62, -1, -1, -1, 63,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1, -1,
    -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1,
    -1, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, -1, -1, -1, -1, -1,
    SMG_NONE16, SMG_NONE16, SMG_NONE16, SMG_NONE16, SMG_NONE16, SMG_NONE16, SMG_NONE16, SMG_NONE16
#undef SMG_NONE16
};

#ifdef SMG_AVX2
/* Those of `text` that lie between two characters, both included, as ones; no character is above 127. */
#define SMG_BETWEEN(text, low, high) \
    _mm256_and_si256( \
        _mm256_cmpgt_epi8(text, _mm256_set1_epi8((low) - 1)), _mm256_cmpgt_epi8(_mm256_set1_epi8((high) + 1), text) \
    )

/* Eight fours at once, as many as there are with two more behind them, because 16 bytes are written for 12; how many. A
   character is moved to its six bits by one distance for each of the five ranges that base64 has. */
SMG_FOR_AVX2 static ptrdiff_t smg_base64_part(const uint8_t *text, ptrdiff_t fours, uint8_t *made) {
    const __m256i order = _mm256_setr_epi8(
        2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1, 2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1
    );
    ptrdiff_t at = 0;
    for (; at + 10 <= fours; at += 8, text += 32, made += 24) {
        const __m256i found = _mm256_loadu_si256((const __m256i *)text);
        const __m256i upper = SMG_BETWEEN(found, 'A', 'Z'), lower = SMG_BETWEEN(found, 'a', 'z');
        const __m256i digit = SMG_BETWEEN(found, '0', '9');
        const __m256i plus = _mm256_cmpeq_epi8(found, _mm256_set1_epi8('+'));
        const __m256i slash = _mm256_cmpeq_epi8(found, _mm256_set1_epi8('/'));
        const __m256i letter = _mm256_or_si256(upper, lower), sign = _mm256_or_si256(plus, slash);
        const __m256i right = _mm256_or_si256(letter, _mm256_or_si256(digit, sign));
        if (_mm256_movemask_epi8(right) != -1) break;
        const __m256i distance = _mm256_or_si256(
            _mm256_or_si256(
                _mm256_and_si256(upper, _mm256_set1_epi8(-'A')), _mm256_and_si256(lower, _mm256_set1_epi8(26 - 'a'))
            ),
            _mm256_or_si256(
                _mm256_and_si256(digit, _mm256_set1_epi8(52 - '0')),
                _mm256_or_si256(
                    _mm256_and_si256(plus, _mm256_set1_epi8(62 - '+')),
                    _mm256_and_si256(slash, _mm256_set1_epi8(63 - '/'))
                )
            )
        );
        const __m256i six = _mm256_add_epi8(found, distance);
        /* Twelve bits of two characters, then 24 of four, whose bytes stand in the other order. */
        const __m256i twelve = _mm256_maddubs_epi16(six, _mm256_set1_epi16(0x0140));
        const __m256i bits = _mm256_madd_epi16(twelve, _mm256_set1_epi32(0x00011000));
        const __m256i bytes = _mm256_shuffle_epi8(bits, order);
        _mm_storeu_si128((__m128i *)made, _mm256_castsi256_si128(bytes));
        _mm_storeu_si128((__m128i *)(made + 12), _mm256_extracti128_si256(bytes, 1));
    }
    return at;
}
#endif

/* The bytes of so many fours of characters, 3 each; whether all of these were base64, without padding. */
static int smg_base64(const uint8_t *text, ptrdiff_t fours, uint8_t *made, int avx2) {
    int32_t wrong = 0;
    ptrdiff_t done = 0;
    (void)avx2;
#ifdef SMG_AVX2
    if (avx2) done = smg_base64_part(text, fours, made);
#endif
    text += 4 * done;
    made += 3 * done;
    for (ptrdiff_t at = done; at < fours; at++, text += 4, made += 3) {
        const int32_t first = smg_six_bits[text[0]], second = smg_six_bits[text[1]];
        const int32_t third = smg_six_bits[text[2]], fourth = smg_six_bits[text[3]];
        wrong |= first | second | third | fourth;
        const uint32_t bits =
            (uint32_t)first << 18 | (uint32_t)second << 12 | (uint32_t)third << 6 | (uint32_t)fourth;
        made[0] = (uint8_t)(bits >> 16);
        made[1] = (uint8_t)(bits >> 8);
        made[2] = (uint8_t)bits;
    }
    return wrong >= 0;
}

/* How many levels of a run must be looked up: half, where the other half is the same again, as copies of a still are. */
static inline ptrdiff_t smg_new_part(const uint8_t *levels, ptrdiff_t run) {
    const ptrdiff_t half = run / 2;
    return half > 0 && run % 2 == 0 && !memcmp(levels, levels + half, (size_t)half) ? half : run;
}

/* Levels to numbers of two or four bytes, by a table of 256 for each channel; channels change every `run` levels. `made`
   need not be aligned. */
static void smg_wide2(const uint8_t *levels, const uint16_t *table, uint8_t *made, ptrdiff_t size, ptrdiff_t run) {
    for (ptrdiff_t at = 0, channel = 0; at < size; at += run, channel = channel == 2 ? 0 : channel + 1) {
        const uint16_t *values = table + 256 * channel;
        const ptrdiff_t part = smg_new_part(levels + at, run);
        for (ptrdiff_t step = at; step < at + part; step++) memcpy(made + 2 * step, values + levels[step], 2);
        memcpy(made + 2 * (at + part), made + 2 * at, (size_t)(2 * (run - part)));
    }
}

static void smg_wide4(const uint8_t *levels, const uint32_t *table, uint8_t *made, ptrdiff_t size, ptrdiff_t run) {
    for (ptrdiff_t at = 0, channel = 0; at < size; at += run, channel = channel == 2 ? 0 : channel + 1) {
        const uint32_t *values = table + 256 * channel;
        const ptrdiff_t part = smg_new_part(levels + at, run);
        for (ptrdiff_t step = at; step < at + part; step++) memcpy(made + 4 * step, values + levels[step], 4);
        memcpy(made + 4 * (at + part), made + 4 * at, (size_t)(4 * (run - part)));
    }
}

#endif
