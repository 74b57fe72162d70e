/* What the machine can do at most, to measure programs by: bytes read in order, and multiply-adds, per second, on one
   thread and on several.  Compiled for the machine that runs it; everything is timed inside. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif
#define CHAINS 12 /* that hide the latency of a multiply-add, as many as there are registers for */
#define MOST 64   /* threads */

typedef float floats __attribute__((vector_size(WIDTH)));
typedef uint64_t words __attribute__((vector_size(WIDTH)));

enum { READ, FLOATS, BYTES, PAIRS };

typedef struct {
    int what;
    const unsigned char *data; /* READ */
    size_t bytes;
    int stretches; /* that are read side by side */
    long rounds;
    double begin, end; /* seconds */
    uint64_t kept;     /* results that nothing reads, or the compiler leaves the work out */
    atomic_int *ready;
    int threads;
} job;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t folded(const void *registers, size_t bytes)
{
    const unsigned char *const p = registers;
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes; ++i) {
        sum = sum * 31 + p[i];
    }
    return sum;
}

/* Several stretches at once keep more requests under way than one: the best of some numbers is the limit. */
static void read_all(job *j)
{
    const size_t stretch = j->bytes / (size_t)j->stretches;
    words sum[8];
    memset(sum, 0, sizeof sum);
    for (long round = 0; round < j->rounds; ++round) {
        for (size_t i = 0; i + sizeof sum <= stretch; i += sizeof sum) {
            for (int s = 0; s < j->stretches; ++s) {
                const words *const p = (const words *)(const void *)(j->data + (size_t)s * stretch + i);
                for (int k = 0; k < 8; ++k) {
                    sum[k] ^= p[k];
                }
                if (j->stretches == 8) { /* asked for ahead: sometimes more, sometimes less */
                    for (size_t ahead = 512; ahead < 512 + sizeof sum; ahead += 64) {
                        __builtin_prefetch((const unsigned char *)p + ahead, 0, 0);
                    }
                }
            }
        }
        __asm__ volatile("" : : : "memory");
    }
    j->kept += folded(sum, sizeof sum);
}

/* Multiply-adds of floats: WIDTH / 4 * CHAINS * 16 of a round. */
static void floats_all(job *j)
{
    floats sum[CHAINS], a, b;
    for (int k = 0; k < CHAINS; ++k) {
        sum[k] = (floats){0};
    }
    a = (floats){0} + 0.999f;
    b = (floats){0} + 1e-3f;
    __asm__ volatile("" : "+x"(a), "+x"(b));
    for (long round = 0; round < j->rounds; ++round) {
        for (int repeat = 0; repeat < 16; ++repeat) {
            for (int k = 0; k < CHAINS; ++k) {
                sum[k] = sum[k] * a + b;
            }
        }
    }
    j->kept += folded(sum, sizeof sum);
}

/* One instruction that adds products of bytes to sums of 32 bits: the type of a register, its bytes, and where it may lie. */
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
typedef __m512i dots;
#define ADD_DOTS(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define IN_REGISTER "+v"
#elif defined(__AVXVNNI__)
typedef __m256i dots;
#define ADD_DOTS(sum, a, b) _mm256_dpbusd_avx_epi32(sum, a, b)
#define IN_REGISTER "+x"
#elif defined(__ARM_FEATURE_MATMUL_INT8)
typedef int32x4_t dots;
#define ADD_DOTS(sum, a, b) vmmlaq_s32(sum, (int8x16_t)(a), (int8x16_t)(b))
#define IN_REGISTER "+w"
#define PER_BYTE 2L /* each byte of one is multiplied with two of the other */
#elif defined(__ARM_FEATURE_DOTPROD)
typedef int32x4_t dots;
#define ADD_DOTS(sum, a, b) vdotq_s32(sum, (int8x16_t)(a), (int8x16_t)(b))
#define IN_REGISTER "+w"
#endif
#if !defined(PER_BYTE)
#define PER_BYTE 1L
#endif

/* Products of 8-bit integers added to 32 bits, as the machine does most at once; their number of a round, or 0. */
static long bytes_all(job *j)
{
#if defined(ADD_DOTS)
    dots sum[CHAINS], a, b;
    memset(sum, 0, sizeof sum);
    memset(&a, 3, sizeof a);
    memset(&b, 5, sizeof b);
    __asm__ volatile("" : IN_REGISTER(a), IN_REGISTER(b));
    for (long round = 0; round < j->rounds; ++round) {
        for (int repeat = 0; repeat < 16; ++repeat) {
            for (int k = 0; k < CHAINS; ++k) {
                sum[k] = ADD_DOTS(sum[k], a, b);
            }
        }
    }
    j->kept += folded(sum, sizeof sum);
    return PER_BYTE * (long)sizeof(dots) * CHAINS * 16;
#elif defined(__AVX2__)
    const __m256i ones = _mm256_set1_epi16(1), b0 = _mm256_set1_epi8(3), b1 = _mm256_set1_epi8(5);
    __m256i s0 = _mm256_setzero_si256(), s1 = s0, s2 = s0, s3 = s0, a0 = b0, a1 = b1;
    for (long round = 0; round < j->rounds; ++round) {
        for (int repeat = 0; repeat < 16; ++repeat) {
            __asm__ volatile("" : "+x"(a0), "+x"(a1));
            s0 = _mm256_add_epi32(s0, _mm256_madd_epi16(_mm256_maddubs_epi16(a0, b0), ones));
            s1 = _mm256_add_epi32(s1, _mm256_madd_epi16(_mm256_maddubs_epi16(a0, b1), ones));
            s2 = _mm256_add_epi32(s2, _mm256_madd_epi16(_mm256_maddubs_epi16(a1, b0), ones));
            s3 = _mm256_add_epi32(s3, _mm256_madd_epi16(_mm256_maddubs_epi16(a1, b1), ones));
        }
    }
    const __m256i sum[4] = {s0, s1, s2, s3};
    j->kept += folded(sum, sizeof sum);
    return 32L * 4 * 16;
#else
    (void)j;
    return 0;
#endif
}

/* Products of bf16 added to f32 in one instruction; their number of a round, or 0. */
static long pairs_all(job *j)
{
#if defined(__AVX512BF16__) && defined(__AVX512F__)
    __m512 sum[CHAINS];
    __m512i bits = _mm512_set1_epi16(0x3f80);
    for (int k = 0; k < CHAINS; ++k) {
        sum[k] = _mm512_setzero_ps();
    }
    __asm__ volatile("" : "+v"(bits));
    for (long round = 0; round < j->rounds; ++round) {
        for (int repeat = 0; repeat < 16; ++repeat) {
            for (int k = 0; k < CHAINS; ++k) {
                sum[k] = _mm512_dpbf16_ps(sum[k], (__m512bh)bits, (__m512bh)bits);
            }
        }
    }
    j->kept += folded(sum, sizeof sum);
    return 32L * CHAINS * 16;
#else
    (void)j;
    return 0;
#endif
}

static void *worker(void *context)
{
    job *const j = context;
    atomic_fetch_add(j->ready, 1);
    while (atomic_load(j->ready) < j->threads) {
    }
    j->begin = seconds();
    switch (j->what) {
    case READ:
        read_all(j);
        break;
    case FLOATS:
        floats_all(j);
        break;
    case BYTES:
        bytes_all(j);
        break;
    default:
        pairs_all(j);
    }
    j->end = seconds();
    return NULL;
}

/* Seconds from when the first thread begins until the last ends; below 0 if there are no threads to be had. */
static double together(const job *one, int threads, size_t share)
{
    pthread_t ids[MOST];
    job jobs[MOST];
    atomic_int ready = 0;
    int made = 1;
    for (int t = 0; t < threads; ++t) {
        jobs[t] = *one;
        jobs[t].data = one->data + (size_t)t * share;
        jobs[t].ready = &ready;
        jobs[t].threads = threads;
        if (t > 0 && made == t && pthread_create(&ids[t], NULL, worker, &jobs[t]) == 0) {
            ++made;
        }
    }
    if (made < threads) {
        atomic_store(&ready, MOST);
    }
    worker(&jobs[0]);
    double begin = jobs[0].begin, end = jobs[0].end;
    for (int t = 1; t < made; ++t) {
        pthread_join(ids[t], NULL);
        begin = jobs[t].begin < begin ? jobs[t].begin : begin;
        end = jobs[t].end > end ? jobs[t].end : end;
    }
    return made < threads ? -1 : end - begin;
}

/* Memory for `streaming`, on huge pages where the system grants them, written once; NULL if there is none. */
void *region(size_t bytes)
{
    const size_t huge = (size_t)1 << 21;
    unsigned char *const map = mmap(NULL, bytes + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return NULL;
    }
    unsigned char *const start = map + (huge - (uintptr_t)map % huge) % huge;
#ifdef MADV_HUGEPAGE
    (void)madvise(start, bytes, MADV_HUGEPAGE);
#endif
    memset(start, 1, bytes);
    return start;
}

/* Bytes per second that threads read, each its own share of a region, in so many stretches side by side. */
double streaming(const void *data, size_t bytes, int threads, int stretches, long rounds)
{
    const size_t share = bytes / (size_t)threads / 4096 * 4096;
    const job one = {.what = READ, .data = data, .bytes = share, .stretches = stretches, .rounds = rounds};
    return (double)share * (double)threads * (double)rounds / together(&one, threads, share);
}

/* Products and sums per second, each counted; 0 where the machine has no such unit.
   what  1: f32; 2: 8-bit integers; 3: pairs of bf16 */
double peak(int what, int threads, long rounds)
{
    job none = {.what = what, .rounds = 0};
    long each = 4L;
    switch (what) {
    case FLOATS:
        each = WIDTH / 4L * CHAINS * 16;
        break;
    case BYTES:
        each = bytes_all(&none);
        break;
    default:
        each = pairs_all(&none);
    }
    if (each == 0) {
        return 0;
    }
    const job one = {.what = what, .rounds = rounds};
    return 2.0 * (double)each * (double)rounds * (double)threads / together(&one, threads, 0);
}

/* Seconds that reading the clock takes. */
double clock_cost(void)
{
    const double begin = seconds();
    double last = begin;
    for (int i = 0; i < 1000; ++i) {
        last = seconds();
    }
    return (last - begin) / 1000;
}
