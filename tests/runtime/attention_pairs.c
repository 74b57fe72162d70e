/* Attention in pairs: every bit is that of plain loops over the machine's instruction, for one query as for many, whatever is
   computed along, and however memory lies; and is within the bound of the operator.  What takes no part is NaN or infinite.
   "sizes.h" has shapes, and the working memory of each, without a mask and with one, behind which nothing is written.  Prints what differs, and how many results there were. */
#define OIC_FUSED 2
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OIC_X f32
#define OIC_W bf16
#include "kernels/attention_pairs.h"

#define OIC_X bf16
#define OIC_W bf16
#include "kernels/attention_pairs.h"

#include <math.h>
#include <stdio.h>

#define ROOM (1 << 18)
#define MOST_Q 70
#define MOST_T 620
#define MOST_WIDE 1300 /* numbers of all heads of a position, and gaps */

static float q[MOST_Q * MOST_WIDE], y[MOST_Q * MOST_WIDE], bias[MOST_Q * MOST_T], work[ROOM + 64];
static uint16_t narrow[MOST_Q * MOST_WIDE], all_k[MOST_T * MOST_WIDE], all_v[MOST_T * MOST_WIDE], short_y[MOST_Q * MOST_WIDE];
static uint16_t *k, *v; /* end where the memory does */
static uint8_t mask[MOST_Q * MOST_T];
static uint32_t state = 1;
static int results, wrong;

typedef struct {
    ptrdiff_t N, T, Hq, Hk, Dk, Dv;
    ptrdiff_t room; /* of working memory */
    ptrdiff_t gap;  /* numbers between positions of keys and values */
    int64_t length, window;
    int causal, masked, biased;
    float softcap;
} shape;

static float drawn(void)
{
    state = state * 1664525u + 1013904223u;
    return (float)(int32_t)state * 0x1p-31f;
}

static float one(float sum, uint32_t a, uint32_t b)
{
    OIC_OPAQUE(a); /* of ones gcc makes a constant of AArch64 that its assembler refuses */
    const oic_register_f32 s = oic_register_pairs(oic_register_of_f32(sum), oic_register_of_u32(b), oic_register_of_u32(a));
    return s[0];
}

static float tree(const float *a)
{
    float t[16];
    memcpy(t, a, sizeof t);
    for (int half = 8; half > 0; half /= 2) {
        for (int i = 0; i < half; ++i) {
            t[i] += t[i + half];
        }
    }
    return t[0];
}

static uint32_t pair(uint32_t low, uint32_t high)
{
    return low | high << 16;
}

static int seen(const shape *s, ptrdiff_t i, ptrdiff_t j)
{
    const int64_t at = (int64_t)i + s->length - (int64_t)s->N;
    return j < s->length && (!s->causal || j <= at) && (s->window == INT64_MAX || j > at - s->window) && (!s->masked || mask[i * s->T + j]);
}

static float score(const shape *s, ptrdiff_t i, ptrdiff_t h, ptrdiff_t j, float scale)
{
    const uint16_t *const key = k + j * (s->Hk * s->Dk + s->gap) + h / (s->Hq / s->Hk) * s->Dk;
    float sums[16] = {0};
    for (ptrdiff_t d = 0; d < s->Dk; d += 2) {
        uint32_t two[2], held[2];
        for (int e = 0; e < 2; ++e) {
            two[e] = d + e < s->Dk ? oic_f32_to_bf16(q[(i * s->Hq + h) * s->Dk + d + e] * scale) : 0u;
            held[e] = d + e < s->Dk ? key[d + e] : 0u;
        }
        sums[d / 2 % 16] = one(sums[d / 2 % 16], pair(two[0], two[1]), pair(held[0], held[1]));
    }
    float sum = tree(sums);
    sum = s->softcap > 0.0f ? s->softcap * oic_tanh_f32(sum / s->softcap) : sum;
    return s->biased ? sum + bias[i * s->T + j] : sum;
}

/* Results of one query and head, the order as it is written down. */
static void plain(const shape *s, ptrdiff_t i, ptrdiff_t h, float scale, float *total)
{
    float all_top = -INFINITY, all_sum = 0.0f;
    int any = 0;
    memset(total, 0, (size_t)s->Dv * sizeof *total);
    for (ptrdiff_t span = 0; span < s->T; span += OIC_ATTENTION_SPAN) {
        float acc[256] = {0}, top = -INFINITY, sum = 0.0f;
        for (ptrdiff_t j0 = span; j0 < s->T && j0 < span + OIC_ATTENTION_SPAN; j0 += OIC_ATTENTION_KEYS) {
            float scores[OIC_ATTENTION_KEYS], high = top, sums[16] = {0};
            for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; ++j) {
                const int part = j0 + j < s->T && seen(s, i, j0 + j);
                any |= part;
                scores[j] = part ? score(s, i, h, j0 + j, scale) : -INFINITY;
                high = scores[j] > high ? scores[j] : high;
            }
            if (high == -INFINITY) {
                for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; ++j) {
                    sum += scores[j] != scores[j] ? scores[j] : 0.0f;
                }
            } else if (high > top && top != -INFINITY) {
                const float factor = oic_exp_f32(top - high);
                sum *= factor;
                for (ptrdiff_t d = 0; d < s->Dv; ++d) {
                    acc[d] *= factor;
                }
            }
            for (ptrdiff_t j = 0; j < OIC_ATTENTION_KEYS; j += 2) {
                uint32_t weights = 0u, left = 0u;
                for (int e = 0; e < 2; ++e) {
                    const float weight = high == -INFINITY ? 0.0f : oic_exp_f32(scores[j + e] - high);
                    weights |= (uint32_t)oic_f32_to_bf16(weight < 0x1p-126f ? 0.0f : weight) << 16 * e;
                    left |= j0 + j + e < s->T && seen(s, i, j0 + j + e) ? 0xffffu << 16 * e : 0u;
                }
                if (high != -INFINITY) {
                    sums[j / 2 % 16] = one(sums[j / 2 % 16], 0x3f803f80u, weights);
                }
                for (ptrdiff_t d = 0; left != 0u && d < s->Dv; ++d) {
                    const uint16_t *const value = v + (j0 + j) * (s->Hk * s->Dv + s->gap) + h / (s->Hq / s->Hk) * s->Dv + d;
                    const uint32_t numbers = pair(left & 0xffffu ? value[0] : 0u, left >> 16 ? value[s->Hk * s->Dv + s->gap] : 0u);
                    acc[d] = one(acc[d], weights, numbers);
                }
            }
            sum += high == -INFINITY ? 0.0f : tree(sums);
            top = high;
        }
        const float low = all_top < top ? all_top : top, most = all_top < top ? top : all_top;
        const float factor = oic_exp_f32(low == -INFINITY ? 0.0f : low - most);
        const int raised = top > all_top;
        all_sum = raised ? oic_madd_f32(all_sum, factor, sum) : oic_madd_f32(sum, factor, all_sum);
        for (ptrdiff_t d = 0; d < s->Dv; ++d) {
            total[d] = raised ? oic_madd_f32(total[d], factor, acc[d]) : oic_madd_f32(acc[d], factor, total[d]);
        }
        all_top = raised ? top : all_top;
    }
    for (ptrdiff_t d = 0; any && d < s->Dv; ++d) {
        total[d] /= all_sum;
    }
}

/* How far a result is from the exact one, for the queries as they are rounded. */
static void within(const shape *s, ptrdiff_t i, ptrdiff_t h, float scale, const float *found)
{
    double weights[MOST_T], top = -INFINITY, size = 0.0, sum = 0.0, largest = 0.0;
    const ptrdiff_t kt = s->Hk * s->Dk + s->gap, vt = s->Hk * s->Dv + s->gap, hk = h / (s->Hq / s->Hk);
    for (ptrdiff_t j = 0; j < s->T; ++j) {
        weights[j] = 0.0;
        double magnitude = 0.0;
        for (ptrdiff_t d = 0; seen(s, i, j) && d < s->Dk; ++d) {
            const double product = (double)q[(i * s->Hq + h) * s->Dk + d] * (double)scale * (double)oic_bf16_to_f32(k[j * kt + hk * s->Dk + d]);
            weights[j] += product;
            magnitude += fabs(product);
        }
        size = magnitude > size ? magnitude : size;
        weights[j] = s->softcap > 0.0f ? (double)s->softcap * tanh(weights[j] / (double)s->softcap) : weights[j];
        weights[j] += s->biased && seen(s, i, j) ? (double)bias[i * s->T + j] : 0.0;
        top = seen(s, i, j) && weights[j] > top ? weights[j] : top;
    }
    for (ptrdiff_t j = 0; j < s->T; ++j) {
        weights[j] = seen(s, i, j) ? exp(weights[j] - top) : 0.0;
        sum += weights[j];
        for (ptrdiff_t d = 0; seen(s, i, j) && d < s->Dv; ++d) {
            const double value = fabs((double)oic_bf16_to_f32(v[j * vt + hk * s->Dv + d]));
            largest = value > largest ? value : largest;
        }
    }
    for (ptrdiff_t d = 0; d < s->Dv; ++d) {
        double exact = 0.0;
        for (ptrdiff_t j = 0; j < s->T; ++j) {
            exact += seen(s, i, j) ? weights[j] / sum * (double)oic_bf16_to_f32(v[j * vt + hk * s->Dv + d]) : 0.0;
        }
        if (!(fabs(exact - (double)found[d]) <= (1.0 + size) * 0x1p-8 * largest)) {
            printf("query %d head %d: %a is too far from %a\n", (int)i, (int)h, (double)found[d], exact);
        }
    }
}

static void compare(const shape *s, const char *what, ptrdiff_t at, float found, float expected)
{
    ++results;
    if (oic_bits_f32(found) != oic_bits_f32(expected) && !(found != found && expected != expected) && ++wrong < 10) {
        printf("%s: %d queries, %d keys, heads %d/%d of %d, %d, gap %d: at %d %a, not %a\n", what, (int)s->N, (int)s->T, (int)s->Hq,
               (int)s->Hk, (int)s->Dk, (int)s->Dv, (int)s->gap, (int)at, (double)found, (double)expected);
    }
}

static void attend(const shape *s, int special)
{
    const float scale = 0.3f;
    const ptrdiff_t kw = s->Hk * s->Dk + s->gap, vw = s->Hk * s->Dv + s->gap, rows = s->N * s->Hq;
    k = all_k + MOST_T * MOST_WIDE - s->T * kw;
    v = all_v + MOST_T * MOST_WIDE - s->T * vw;
    for (ptrdiff_t i = 0; i < rows * s->Dk; ++i) {
        narrow[i] = oic_f32_to_bf16(3.0f * drawn());
        q[i] = oic_bf16_to_f32(narrow[i]);
    }
    for (ptrdiff_t i = 0; i < s->N * s->T; ++i) {
        bias[i] = special && i % 19 == 0 ? -INFINITY : drawn();
        mask[i] = drawn() > -0.3f;
    }
    for (ptrdiff_t j = 0; j < s->T; ++j) {
        int part = 0;
        for (ptrdiff_t i = 0; i < s->N; ++i) {
            part |= seen(s, i, j);
        }
        for (ptrdiff_t d = 0; d < kw; ++d) { /* of other queries what one does not see is strange, too */
            k[j * kw + d] = !part ? 0x7fc0u : special && j % 31 == 7 ? oic_f32_to_bf16(drawn() * 0x1p-127f) : oic_f32_to_bf16(drawn());
        }
        for (ptrdiff_t d = 0; d < vw; ++d) {
            v[j * vw + d] = !part || (special && j == s->length - 1) ? 0xff80u : oic_f32_to_bf16(drawn());
        }
        if (special && j == s->length - 2) {
            k[j * kw] = 0x7fc0u;
        }
    }
    const ptrdiff_t qs[2] = {s->Hq * s->Dk, s->Dk}, ks[2] = {kw, s->Dk}, vs[2] = {vw, s->Dv}, bs[3] = {0, s->T, 1};
    oic_attention_pairs_f32_bf16_args a = {.q = q, .k = k, .v = v, .bias = s->biased ? bias : NULL, .mask = s->masked ? mask : NULL,
        .y = y, .work = work, .room = s->room, .N = s->N, .keys = s->T, .Hq = s->Hq, .Hk = s->Hk, .Dk = s->Dk, .Dv = s->Dv, .qs = qs,
        .ks = ks, .vs = vs, .bs = bs, .ms = bs, .length = s->length, .scale = scale, .softcap = s->softcap, .causal = s->causal,
        .window = s->window};
    const oic_attention_pairs_bf16_bf16_args b = {.q = narrow, .k = k, .v = v, .bias = a.bias, .mask = a.mask, .y = short_y, .work = work,
        .room = s->room, .together = 12, .N = s->N, .keys = s->T, .Hq = s->Hq, .Hk = s->Hk, .Dk = s->Dk, .Dv = s->Dv, .qs = qs, .ks = ks,
        .vs = vs, .bs = bs, .ms = bs, .length = s->length, .scale = scale, .softcap = s->softcap, .causal = s->causal,
        .window = s->window};
    for (ptrdiff_t i = s->room; i < s->room + 64; ++i) {
        work[i] = 7.0f;
    }
    oic_attention_pairs_f32_bf16(&a);
    oic_attention_pairs_part_bf16_bf16(&b, 0, oic_attention_pairs_units_bf16_bf16(&b), 0);
    for (ptrdiff_t i = s->room; i < s->room + 64; ++i) {
        compare(s, "behind the working memory", i - s->room, work[i], 7.0f);
    }
    for (ptrdiff_t i = 0; i < s->N; ++i) {
        for (ptrdiff_t h = 0; h < s->Hq; ++h) {
            float expected[256];
            const ptrdiff_t at = (i * s->Hq + h) * s->Dv;
            plain(s, i, h, scale, expected);
            if (!special) {
                within(s, i, h, scale, y + at);
            }
            for (ptrdiff_t d = 0; d < s->Dv; ++d) {
                compare(s, "f32", at + d, y[at + d], expected[d]);
                compare(s, "bf16", at + d, oic_bf16_to_f32(short_y[at + d]), oic_bf16_to_f32(oic_f32_to_bf16(expected[d])));
            }
        }
    }
}

int main(void)
{
    static const ptrdiff_t sizes[][8] = {
#include "sizes.h"
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        const ptrdiff_t *const z = sizes[i];
        shape s = {.N = z[0], .T = z[1], .Hq = z[2], .Hk = z[3], .Dk = z[4], .Dv = z[5], .room = z[6], .length = z[1], .window = INT64_MAX};
        attend(&s, 0);
        s.causal = 1;
        attend(&s, 0);
        attend(&s, 1);
        for (s.gap = 1; s.gap < 3; ++s.gap) { /* keys are no pairs where they lie, and are */
            s.length = z[1] - z[1] / 3;
            attend(&s, 0);
        }
        s.window = 1 + z[1] / 4;
        s.biased = 1;
        attend(&s, 0);
        attend(&s, 1);
        s.softcap = 1.5f;
        s.masked = 1;
        s.room = z[7];
        attend(&s, 0);
        s.length = 0;
        attend(&s, 0);
    }
    printf("%d results, %d wrong\n", results, wrong);
    return wrong != 0;
}
